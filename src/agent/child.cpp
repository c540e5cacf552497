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

// Between fork and exec: only what signal-safety(7) allows.
[[noreturn]] void BecomeProgram(char* const* arguments, char* const* environment, int start_fd,
                                int failure_fd) {
  char go = 0;
  if (::read(start_fd, &go, 1) != 1) ::_exit(Child::kNotExecutable);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(arguments[0], arguments, environment);
  const int error_number = errno;
  (void)!::write(failure_fd, &error_number, sizeof error_number);
  ::_exit(error_number == ENOENT ? Child::kNotFound : Child::kNotExecutable);
}

}  // namespace

Result<Child> Child::Prepare(std::vector<std::string> command, const std::vector<std::string>& environment) {
  if (command.empty()) return Fail(ErrorCode::kInvalidArgument, "no program was given");
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

  const pid_t pid = ::fork();
  if (pid < 0) return Fail(ErrnoError(errno, "fork"));
  if (pid == 0) {
    start.write_end.Close();
    BecomeProgram(arguments.data(), variables.data(), start.read_end.get(), failure.write_end.get());
  }
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
  if (count == sizeof error_number) return Fail(ErrnoError(error_number, program_));
  return {};
}

std::optional<int> Child::TryWait() {
  if (exit_status_.has_value()) return exit_status_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_status_;
}

}  // namespace gpusonde::agent
