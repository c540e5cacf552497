// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::agent {

// A child process that waits before exec, so that profiling can be ready before the program's first
// instruction. Not thread-safe.
class Child {
 public:
  // Exit statuses of a program that can't be started, as in env(1).
  static constexpr int kNotExecutable = 126;
  static constexpr int kNotFound = 127;

  // Forks a process that waits for Start. It inherits the terminal, files and environment, and what is
  // ignored and blocked of signals. `environment` ("NAME=value") is added to the inherited one and overrides
  // it. `ignored`: signals that it ignores though this process catches them.
  static Result<Child> Prepare(std::vector<std::string> command,
                               const std::vector<std::string>& environment = {},
                               const std::vector<int>& ignored = {});

  pid_t pid() const { return pid_; }

  // Lets the child exec the program. Errors: kNotFound, kPermissionDenied or another when execvp fails; the
  // child has then exited with kNotFound or kNotExecutable.
  Status Start();

  // The exit status if the child has ended: the program's own, or 128 + the number of the signal that killed
  // it, as in shells.
  std::optional<int> TryWait();
  // The signal that killed it; 0 if none did, or it hasn't been waited for.
  int killed_by() const { return killed_by_; }

  Child(Child&&) = default;
  Child& operator=(Child&&) = default;

 private:
  Child(pid_t pid, Fd start, Fd failure)
      : pid_(pid), start_(std::move(start)), failure_(std::move(failure)) {}

  pid_t pid_;
  Fd start_;    // closing it without a byte ends the waiting process
  Fd failure_;  // errno of a failed execvp arrives here; a successful execvp closes it
  std::optional<int> exit_status_;
  int killed_by_ = 0;
  std::string program_;
};

}  // namespace gpusonde::agent
