// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/bpf.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::ebpf {

// This process's descriptor of the BPF map with this name.
inline std::optional<int> FindMap(std::string_view name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    bpf_map_info info{};
    uint32_t size = sizeof info;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && std::string_view(info.name) == name) return fd;
  }
  return std::nullopt;
}

// Whether the BPF map has an entry with this key.
inline bool HasEntry(int map, uint32_t key) {
  uint32_t next = 0, at = 0;
  for (const uint32_t* from = nullptr; bpf_map_get_next_key(map, from, &next) == 0; from = &at) {
    if (next == key) return true;
    at = next;
  }
  return false;
}

// Whether the one program of this process that has entries of threads (bpf/thread_entries.h) has one of this
// thread.
inline bool HasThread(uint32_t tid) {
  const std::optional<int> slots = FindMap("thread_slots"), crowded = FindMap("crowded_threads");
  bpf_map_info info{};
  uint32_t size = sizeof info;
  if (!slots || !crowded || bpf_obj_get_info_by_fd(*slots, &info, &size) != 0) return false;
  std::vector<uint32_t> slot(info.value_size / sizeof(uint32_t));
  const uint32_t index = tid % info.max_entries;
  return (bpf_map_lookup_elem(*slots, &index, slot.data()) == 0 && slot.front() == tid) ||
         HasEntry(*crowded, tid);
}

}  // namespace gpusonde::ebpf
