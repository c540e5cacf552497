// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/target_list.h"

#include <bpf/bpf.h>
#include <fmt/format.h>

#include <cerrno>

namespace gpusonde::ebpf {

Status AddTarget(int targets_fd, int changes_fd, int32_t pid) {
  const auto key = static_cast<uint32_t>(pid);
  const uint8_t one = 1;
  const uint32_t zero = 0;
  uint32_t changes = 0;
  if (bpf_map_update_elem(targets_fd, &key, &one, BPF_ANY) != 0 ||
      bpf_map_lookup_elem(changes_fd, &zero, &changes) != 0)
    return Fail(ErrnoError(errno, fmt::format("follow process {}", pid)));
  ++changes;
  if (bpf_map_update_elem(changes_fd, &zero, &changes, BPF_ANY) != 0)
    return Fail(ErrnoError(errno, fmt::format("follow process {}", pid)));
  return {};
}

}  // namespace gpusonde::ebpf
