// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sources/ebpf/interval_allocator.h"
#include "unwind/compile.h"
#include "wire/unwind.h"

namespace gpusonde::ebpf {

// The kernel memory for unwind tables (wire/unwind.h): shards, a few at first, and more when a table needs
// them. Not thread-safe.
class UnwindShards {
 public:
  // Where a table is.
  struct Placed {
    struct Block {
      uint32_t first_word = 0, words = 0;
    };
    uint32_t directory = 0;  // word index
    uint32_t pages = 0;
    std::vector<Block> blocks;  // all of its memory
  };

  static Result<UnwindShards> Create();

  // Copies a table into the shards. Errors: kOutOfSpace when it doesn't fit.
  Result<Placed> Place(const unwind::Table& table);

  // Frees a table. No program may still use it.
  void Remove(const Placed& placed);

  // Descriptor of the map of shards.
  int fd() const { return outer_.get(); }
  size_t bytes() const;

 private:
  struct Shard {
    Fd map;
    IntervalAllocator words{GPUSONDE_UNWIND_SHARD_WORDS};
  };
  struct Piece {
    size_t first_page = 0, pages = 0;  // none: the directory
    uint32_t words = 0;
  };

  explicit UnwindShards(Fd outer) : outer_(std::move(outer)) {}
  static Result<std::vector<Piece>> Cut(const unwind::Table& table);
  // False, without allocating anything, when not all pieces fit.
  bool Allocate(const std::vector<Piece>& pieces, Placed& placed);
  Status GrowFor(const std::vector<Piece>& pieces);
  Status Grow(uint64_t wanted);  // by this many shards
  Status WritePieces(const unwind::Table& table, const std::vector<Piece>& pieces, const Placed& placed);
  Status Write(uint32_t first_word, std::span<const uint32_t> words);

  Fd outer_;
  std::vector<Shard> shards_;
};

}  // namespace gpusonde::ebpf
