// SPDX-License-Identifier: Apache-2.0
#include "browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace gpusonde::app {
namespace {

bool HasDesktop() { return std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr; }

}  // namespace

void OpenInBrowser(const std::string& url) {
  if (!HasDesktop() || ::isatty(STDOUT_FILENO) == 0 || ::geteuid() == 0) return;
  // setsid(1) forks and exits at once: the browser then doesn't receive our Ctrl-C, and we need not wait for
  // it.
  const std::string words[] = {"setsid", "--fork", "xdg-open", url};
  char* arguments[] = {const_cast<char*>(words[0].c_str()), const_cast<char*>(words[1].c_str()),
                       const_cast<char*>(words[2].c_str()), const_cast<char*>(words[3].c_str()), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  // Boost.Asio opens sockets without close-on-exec: the browser would keep our port.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  pid_t child = 0;
  if (::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments, environ) == 0)
    ::waitpid(child, nullptr, 0);
  posix_spawn_file_actions_destroy(&actions);
}

}  // namespace gpusonde::app
