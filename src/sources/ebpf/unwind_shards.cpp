// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/unwind_shards.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sources/ebpf/explain.h"

namespace gpusonde::ebpf {
namespace {

// Rows that are placed together: small enough that little of a shard's end is left over, large enough that
// libraries of an everyday size are a single piece.
constexpr uint32_t kMaxBlockWords = GPUSONDE_UNWIND_SHARD_WORDS / 4;
constexpr uint32_t kShardBytes = GPUSONDE_UNWIND_SHARD_WORDS * sizeof(uint32_t);

Result<Fd> MakeShard() {
  const bpf_map_create_opts options{.sz = sizeof options, .map_flags = BPF_F_MMAPABLE};
  Fd shard(::bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_shard", sizeof(uint32_t), kShardBytes, 1, &options));
  if (!shard.valid()) return Fail(Explain(errno, "make room for unwind tables"));
  return shard;
}

}  // namespace

Result<UnwindShards> UnwindShards::Create() {
  // Only says what shards are like.
  ASSIGN_OR_RETURN(const Fd example, MakeShard());
  const bpf_map_create_opts options{.sz = sizeof options,
                                    .inner_map_fd = static_cast<uint32_t>(example.get())};
  Fd outer(::bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "unwind_shards", sizeof(uint32_t), sizeof(uint32_t),
                            GPUSONDE_UNWIND_SHARDS, &options));
  if (!outer.valid()) return Fail(Explain(errno, "make the kernel's table of unwind tables"));
  return UnwindShards(std::move(outer));
}

Result<UnwindShards::Placed> UnwindShards::Place(const unwind::Table& table) {
  Placed placed{.pages = static_cast<uint32_t>(table.pages.size())};
  if (table.pages.empty()) return placed;
  const auto put = [&](std::span<const uint32_t> words) -> Result<uint32_t> {
    const auto count = static_cast<uint32_t>(words.size());
    ASSIGN_OR_RETURN(const uint32_t first, Allocate(count));
    placed.blocks.push_back({first, count});
    TRY(Write(first, words));
    return first;
  };
  const auto put_all = [&]() -> Status {
    // The rows of neighbouring pages go together as far as one shard holds them.
    std::vector<uint32_t> directory;
    for (size_t page = 0; page < table.pages.size();) {
      const uint32_t first_row = table.pages[page].first;
      size_t after = page;
      uint32_t rows = 0;
      while (after < table.pages.size() && rows + table.pages[after].count <= kMaxBlockWords) {
        rows += table.pages[after].count;
        ++after;
      }
      if (after == page) return Fail(ErrorCode::kUnsupported, "more unwind rows than code");
      ASSIGN_OR_RETURN(const uint32_t word, put(std::span(table.rows).subspan(first_row, rows)));
      for (; page < after; ++page) {
        directory.push_back(word + (table.pages[page].first - first_row));
        directory.push_back(table.pages[page].count);
      }
    }
    ASSIGN_OR_RETURN(placed.directory, put(directory));
    return {};
  };
  if (Status all = put_all(); !all.has_value()) {
    Remove(placed);
    return Fail(std::move(all).error());
  }
  return placed;
}

Result<uint32_t> UnwindShards::Allocate(uint32_t words) {
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i] == nullptr) {
      ASSIGN_OR_RETURN(Fd map, MakeShard());
      const int fd = map.get();
      if (::bpf_map_update_elem(outer_.get(), &i, &fd, BPF_ANY) != 0)
        return Fail(Explain(errno, "add room for unwind tables"));
      shards_[i] = std::make_unique<Shard>(Shard{.map = std::move(map)});
    }
    if (const auto first = shards_[i]->words.Allocate(words); first.has_value())
      return i * GPUSONDE_UNWIND_SHARD_WORDS + *first;
  }
  return Fail(ErrorCode::kOutOfSpace, "all room for unwind tables is in use");
}

Status UnwindShards::Write(uint32_t first_word, std::span<const uint32_t> words) {
  const Shard& shard = *shards_[first_word / GPUSONDE_UNWIND_SHARD_WORDS];
  // Mapped only while it is written, so that the tables are not part of this process as well.
  void* memory = ::mmap(nullptr, kShardBytes, PROT_READ | PROT_WRITE, MAP_SHARED, shard.map.get(), 0);
  if (memory == MAP_FAILED) return Fail(ErrnoError(errno, "map room for unwind tables"));
  std::memcpy(static_cast<uint32_t*>(memory) + first_word % GPUSONDE_UNWIND_SHARD_WORDS, words.data(),
              words.size_bytes());
  ::munmap(memory, kShardBytes);
  return {};
}

void UnwindShards::Remove(const Placed& placed) {
  for (const Placed::Block& block : placed.blocks) {
    const uint32_t index = block.first_word / GPUSONDE_UNWIND_SHARD_WORDS;
    shards_[index]->words.Free(block.first_word % GPUSONDE_UNWIND_SHARD_WORDS, block.words);
    if (!shards_[index]->words.IsAllFree()) continue;
    ::bpf_map_delete_elem(outer_.get(), &index);
    shards_[index].reset();
  }
}

size_t UnwindShards::bytes() const {
  const auto made = std::ranges::count_if(shards_, [](const auto& shard) { return shard != nullptr; });
  return static_cast<size_t>(made) * kShardBytes;
}

}  // namespace gpusonde::ebpf
