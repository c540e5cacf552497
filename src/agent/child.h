// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::agent {

// A program that is started when told to, so that whoever wants to watch it can be ready before its first
// instruction. Not thread-safe.
class Child {
 public:
  // Exit statuses for a program that can't be started, as env(1).
  static constexpr int kNotExecutable = 126;
  static constexpr int kNotFound = 127;

  // Forks a process that waits for Start. It has our terminal, files, environment and default signal
  // handling.
  // `environment` ("NAME=value") replaces or joins ours.
  static Result<Child> Prepare(std::vector<std::string> command,
                               const std::vector<std::string>& environment = {});

  pid_t pid() const { return pid_; }

  // Lets it become the program. Errors: kNotFound or kPermissionDenied (or another) when execvp fails; the
  // process has ended then, with kNotFound or kNotExecutable.
  Status Start();

  // Its exit status if it has ended: as the program gave it, or 128 + the signal that ended it, as shells
  // say.
  std::optional<int> TryWait();

  Child(Child&&) = default;
  Child& operator=(Child&&) = default;

 private:
  Child(pid_t pid, Fd start, Fd failure)
      : pid_(pid), start_(std::move(start)), failure_(std::move(failure)) {}

  pid_t pid_;
  Fd start_;    // closing it without a byte ends the waiting process
  Fd failure_;  // errno of a failed execvp arrives here; closed by a successful one
  std::optional<int> exit_status_;
  std::string program_;
};

}  // namespace gpusonde::agent
