// SPDX-License-Identifier: Apache-2.0
#include "symbols/server_process.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

namespace gpusonde::symbols {

Result<int32_t> StartServer(const std::vector<std::string>& command, int socket) {
  if (command.empty())
    return Fail(ErrorCode::kUnavailable,
                "can't start a server process: the path of this program is not known");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  // dup2 onto itself would leave close-on-exec set; posix_spawn clears it.
  ::posix_spawn_file_actions_adddup2(&actions, socket, kServerFd);
  // Boost.Asio opens sockets without close-on-exec: a parser of hostile files could read what the clients of
  // this process send.
  ::posix_spawn_file_actions_addclosefrom_np(&actions, kServerFd + 1);
  // Block signals that end this process, as they may be sent to the whole group (Ctrl-C, a closing terminal,
  // systemd): we still have requests for the server then, and end it ourselves.
  sigset_t ends_us;
  ::sigemptyset(&ends_us);
  for (const int number : {SIGINT, SIGHUP, SIGTERM}) ::sigaddset(&ends_us, number);
  ::posix_spawnattr_setsigmask(&attributes, &ends_us);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, arguments.front(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return Fail(ErrnoError(error, "start " + command.front()));
  return pid;
}

}  // namespace gpusonde::symbols
