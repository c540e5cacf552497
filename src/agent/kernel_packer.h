// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/rows.h"
#include "base/id128.h"
#include "model/tables/kernel_packs.h"
#include "sources/cupti/event.h"

namespace gpusonde::agent {

// Packs kernels into rows of kernel_packs for continuous profiling, where a row per kernel would cost more
// than everything else (docs/decisions/0042-kernels-in-packs.md). Not thread-safe.
class KernelPacker {
 public:
  // Of a row. With each commit that adds a row, DuckDB 1.4 logs the lists of up to 2,048 rows again
  // (docs/decisions/0042): 3 MB with these. Two commits of 1.2 million kernels of one launch each took 0.88 s
  // of CPU time in DuckDB, 0.93 s with 128 of a row, and 2.07 s with 10,000 (medians of five).
  static constexpr size_t kMaxKernels = 64;

  // Adds a kernel that has times: `start_ns` and `end_ns` since the epoch, the end not before the start.
  void Add(const Id128& process, const Id128& device, int32_t session, const cupti::Kernel& kernel,
           int64_t start_ns, int64_t end_ns);

  // Writes the kernels added since the last call, as rows of at most kMaxKernels. Rows of one launch, and the
  // kernels within them, are sorted by start, which saves readers the sorting: CUPTI delivers the kernels of
  // a buffer out of order.
  void Write(Rows& rows);

 private:
  // The fields that all kernels of a pack share.
  struct Launch {
    Id128 process;
    Id128 device;
    int64_t second_ns = 0;
    std::string_view name;
    int32_t session = 0;
    uint32_t context = 0;
    uint32_t stream = 0;
    std::array<uint32_t, 3> grid{};
    std::array<uint16_t, 3> block{};
    uint16_t registers = 0;
    uint32_t static_shared_bytes = 0;
    uint32_t dynamic_shared_bytes = 0;
    bool graph = false;
    bool operator==(const Launch&) const = default;
  };
  struct Hash {
    size_t operator()(const Launch& launch) const;
  };

  struct Timed {
    int64_t offset_ns = 0;  // from Launch::second_ns
    int64_t duration_ns = 0;
    uint64_t graph_node = 0;
    uint32_t correlation = 0;
  };
  using Packs = std::unordered_map<Launch, std::vector<Timed>, Hash>;

  std::vector<Timed>& KernelsOf(Launch launch);
  static model::KernelPack RowOf(const Launch& launch, std::span<const Timed> kernels);

  Packs packs_;
  Packs::value_type* last_ = nullptr;      // of packs_, that of the kernel before: kernels often repeat
  std::unordered_set<std::string> names_;  // of packs_
};

}  // namespace gpusonde::agent
