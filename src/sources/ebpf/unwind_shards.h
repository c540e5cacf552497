// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sources/ebpf/interval_allocator.h"
#include "unwind/compile.h"
#include "wire/unwind.h"

namespace gpusonde::ebpf {

// The kernel's memory for unwind tables (wire/unwind.h): shards, made when the first table needs them and
// given back when the last one leaves. Not thread-safe.
class UnwindShards {
 public:
  // Where a table is.
  struct Placed {
    struct Block {
      uint32_t first_word = 0, words = 0;
    };
    uint32_t directory = 0;  // word index
    uint32_t pages = 0;
    std::vector<Block> blocks;  // all that it takes
  };

  static Result<UnwindShards> Create();

  // Copies a table there. Errors: kOutOfSpace when it doesn't fit.
  Result<Placed> Place(const unwind::Table& table);

  // No program may look at it any more.
  void Remove(const Placed& placed);

  // Of the map of shards.
  int fd() const { return outer_.get(); }
  size_t bytes() const;

 private:
  struct Shard {
    Fd map;
    IntervalAllocator words{GPUSONDE_UNWIND_SHARD_WORDS};
  };

  explicit UnwindShards(Fd outer) : outer_(std::move(outer)), shards_(GPUSONDE_UNWIND_SHARDS) {}
  Result<uint32_t> Allocate(uint32_t words);
  Status Write(uint32_t first_word, std::span<const uint32_t> words);

  Fd outer_;
  std::vector<std::unique_ptr<Shard>> shards_;  // null where there is none
};

}  // namespace gpusonde::ebpf
