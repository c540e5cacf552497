// SPDX-License-Identifier: Apache-2.0
#include "agent/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/ignored_signal.h"
#include "base/signals_blocked.h"

namespace gpusonde::agent {
namespace {

struct Pipe {
  Fd read_end, write_end;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(ErrnoError(errno, "pipe"));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Runs between fork and exec with all signals blocked, so it may only call what signal-safety(7) allows, and
// a Ctrl-C doesn't run our handler, which the child inherits: it takes effect when `mask` is set.
[[noreturn]] void BecomeProgram(char* const* arguments, char* const* environment, const sigset_t& mask,
                                const std::vector<int>& ignored, int start_fd, int failure_fd) {
  char go = 0;
  if (::read(start_fd, &go, 1) != 1) ::_exit(Child::kNotExecutable);
  for (const int number : {SIGHUP, SIGINT, SIGPIPE, SIGTERM})
    if (!IsIgnored(number)) ::signal(number, SIG_DFL);
  for (const int number : ignored) ::signal(number, SIG_IGN);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(arguments[0], arguments, environment);
  const int error_number = errno;
  (void)!::write(failure_fd, &error_number, sizeof error_number);
  ::_exit(error_number == ENOENT ? Child::kNotFound : Child::kNotExecutable);
}

}  // namespace

Result<Child> Child::Prepare(std::vector<std::string> command, const std::vector<std::string>& environment,
                             const std::vector<int>& ignored) {
  if (command.empty()) return Fail(ErrorCode::kInvalidArgument, "no program given");
  ASSIGN_OR_RETURN(Pipe start, MakePipe());
  ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::vector<std::string> added = environment;
  std::vector<char*> variables;
  const auto replaced = [&](std::string_view variable) {
    return std::ranges::any_of(added, [&](const std::string& other) {
      return variable.starts_with(std::string_view(other).substr(0, other.find('=') + 1));
    });
  };
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!replaced(*variable)) variables.push_back(*variable);
  for (std::string& variable : added) variables.push_back(variable.data());
  variables.push_back(nullptr);

  pid_t pid = -1;
  {
    const SignalsBlocked blocked;
    pid = ::fork();
    if (pid == 0) {
      start.write_end.Close();
      BecomeProgram(arguments.data(), variables.data(), blocked.before(), ignored, start.read_end.get(),
                    failure.write_end.get());
    }
  }
  if (pid < 0) return Fail(ErrnoError(errno, "fork"));
  Child child(pid, std::move(start.write_end), std::move(failure.read_end));
  child.program_ = command.front();
  return child;
}

Status Child::Start() {
  const char go = 1;
  if (::write(start_.get(), &go, 1) != 1) return Fail(ErrnoError(errno, "start " + program_));
  start_.Close();
  int error_number = 0;
  ssize_t count = 0;
  do count = ::read(failure_.get(), &error_number, sizeof error_number);
  while (count < 0 && errno == EINTR);
  failure_.Close();
  if (count != sizeof error_number) return {};
  Error error = ErrnoError(error_number, program_);
  if (error_number == ENOENT && ::access(program_.c_str(), F_OK) == 0)
    error.message += program_.contains('/') ? ": the interpreter (#!) or loader that it names isn't there"
                                            : " in the folders of PATH; of this folder, run ./" + program_;
  return Fail(std::move(error));
}

std::optional<int> Child::TryWait() {
  if (exit_status_.has_value()) return exit_status_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  if (WIFSIGNALED(status)) killed_by_ = WTERMSIG(status);
  exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_status_;
}

}  // namespace gpusonde::agent
