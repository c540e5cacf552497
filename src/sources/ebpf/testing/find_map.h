// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/bpf.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace gpusonde::ebpf
