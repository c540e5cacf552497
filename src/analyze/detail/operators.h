// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "analyze/detail/detail_state.h"
#include "analyze/name_table.h"
#include "base/result.h"
#include "base/saturated.h"

namespace gpusonde::analyze {

// What may surround the launch of GPU work on its thread: operators, PyTorch's modules, and ranges (NVTX,
// annotations).
enum class OperatorKind : uint8_t { kOperator, kModule, kRange };

struct OperatorKernel {
  int64_t count = 0;
  int64_t total_ns = 0;

  void Add(int64_t duration_ns) { Merge({1, duration_ns}); }
  void Merge(const OperatorKernel& other) {
    count += other.count;
    total_ns = AddSaturated(total_ns, other.total_ns);
  }
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count);
    archive(total_ns);
  }
};

// GPU work by what launched it: work belongs to all spans that are open on a thread when its launching call
// begins there, and to the innermost one of each kind itself. Sums are integers, so merging in any order
// gives the same. Memory is bounded: names by NameTable, and of pairs of an operator and a kernel those with
// the smallest hashes are kept; others are of the operator's kernel kOther.
class OperatorTable {
 public:
  static constexpr size_t kMaxPairs = 100'000;  // up to twice as many until Finish

  struct Key {
    OperatorKind kind = OperatorKind::kOperator;
    uint32_t name = 0;
    auto operator<=>(const Key&) const = default;
    template <class Archive>
    void Transfer(Archive& archive) {
      archive(kind);
      archive(name);
      archive.Require(kind <= OperatorKind::kRange);
    }
  };
  struct Sums {
    int64_t calls = 0;
    int64_t host_ns = 0;   // of the spans, nested ones too
    int64_t launches = 0;  // GPU work, in total
    int64_t self_ns = 0;   // of work whose innermost span of the kind it is
    int64_t total_ns = 0;
    std::map<uint32_t, OperatorKernel> kernels;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(calls);
      archive(host_ns);
      archive(launches);
      archive(self_ns);
      archive(total_ns);
      archive(kernels);
    }
  };

  uint32_t Name(std::string_view name) { return names_.Add(name); }
  // Stays at its place until Finish.
  Sums& At(const Key& key) { return rows_[key]; }
  // A piece of work of one of the rows.
  void AddKernel(const Key& key, Sums& row, uint32_t kernel, int64_t duration_ns);
  void Merge(const OperatorTable& other);
  // Reduces to the bounds.
  void Finish();

  const NameTable& names() const { return names_; }
  const std::map<Key, Sums>& rows() const { return rows_; }

  template <class Archive>
  void Transfer(Archive& archive) {
    names_.Transfer(archive);
    archive(rows_);
    for (const auto& [key, row] : rows_) {
      archive.Require(key.name < names_.size());
      for (const auto& [kernel, sums] : row.kernels) archive.Require(kernel < names_.size());
    }
    if constexpr (Archive::kReads) pairs_ = CountPairs();
  }

 private:
  void AddRows(const std::map<Key, Sums>& rows, const std::function<uint32_t(uint32_t)>& number_of);
  // Equal in every table.
  uint64_t HashOf(const Key& key, uint32_t kernel) const;
  size_t CountPairs() const;
  void PrunePairs();

  NameTable names_;
  std::map<Key, Sums> rows_;
  size_t pairs_ = 0;
  uint64_t limit_ = ~uint64_t{0};  // of hashes of pairs that are kept
};

// Sums a finished trace. Errors: those of temporary files.
Result<OperatorTable> SumOperators(const DetailState& trace);

}  // namespace gpusonde::analyze
