// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "wire/stack.h"

struct bpf_object;

namespace gpusonde::ebpf {

// What the kernel's programs know of processes in order to take their stacks (bpf/stack.h): one set of maps
// for all programs. Not thread-safe.
class StackTables {
 public:
  // Errors: kPermissionDenied, kUnsupported, each saying what to do.
  static Result<StackTables> Create();

  // Makes the programs of `object`, opened and not yet loaded, use these maps.
  Status ShareWith(bpf_object* object) const;

  // From now on this is what is known of the process. Errors: kOutOfSpace when too many are known.
  Status SetProcess(int32_t pid, const gpusonde_process& process);

  // The process has ended.
  void ForgetProcess(int32_t pid);

 private:
  explicit StackTables(Fd processes) : processes_(std::move(processes)) {}
  Fd processes_;
};

}  // namespace gpusonde::ebpf
