// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "base/id128.h"
#include "fleet/characteristics.h"
#include "fleet/fingerprint.h"
#include "fleet/observe/observation.h"

namespace gpusonde::fleet {

// Makes an observation of a GPU's work. Rows come from files that anyone may have written: sizes below zero
// count as zero, and products beyond their type as its maximum. Not thread-safe.
class ObservationBuilder {
 public:
  struct Kernel {
    Id128 process;
    int64_t context = 0;
    int64_t stream = 0;  // of the process's context
    std::string_view name;
    std::array<int64_t, 3> grid{};
    std::array<int64_t, 3> block{};
    int64_t registers = 0;  // 0: not known
    int64_t static_shared_bytes = 0;
    int64_t dynamic_shared_bytes = 0;
    int64_t duration_ns = 0;
  };

  // Begins a window: its kernels don't follow those of the one before.
  void BeginWindow() { streams_.clear(); }
  // In time order on each stream, within a window.
  void AddKernel(const Kernel& kernel);
  // `kind` as in the table memcpys. Only copies to, from and within the device are characteristics.
  void AddCopy(std::string_view kind, int64_t bytes, int64_t duration_ns);
  void AddSet() { is_busy_ = true; }
  void AddActivity(const GpuWork::Activity& reading) { work_.activity.push_back(reading); }

  // An observation of what was added.
  Observation Build(std::string gpu_uuid, std::string gpu_name) const;

 private:
  struct HashName {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Stream = std::tuple<Id128, int64_t, int64_t>;  // process, context, stream

  std::string_view Keep(std::string_view name);

  std::unordered_set<std::string, HashName, std::equal_to<>> names_;
  std::map<Stream, int64_t> streams_;  // of this window, to numbers of their own
  int64_t next_stream_ = 0;
  FingerprintBuilder fingerprint_;
  GpuWork work_;
  bool is_busy_ = false;
};

}  // namespace gpusonde::fleet
