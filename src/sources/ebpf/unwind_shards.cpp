// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/unwind_shards.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "sources/ebpf/explain.h"

namespace gpusonde::ebpf {
namespace {

// What is placed together: small enough that little of a shard's end is left over, large enough that
// libraries of an everyday size are a single piece.
constexpr uint32_t kMaxPieceWords = GPUSONDE_UNWIND_SHARD_WORDS / 4;
constexpr uint32_t kShardBytes = GPUSONDE_UNWIND_SHARD_WORDS * sizeof(uint32_t);
// Made before anything runs, so that the first program doesn't wait for them: node with its libraries takes
// six.
constexpr uint64_t kFirstShards = 8;
// More than a file needs, for the small ones to come.
constexpr uint64_t kSpareShards = 2;

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
  UnwindShards shards(std::move(outer));
  TRY(shards.Grow(kFirstShards));
  return shards;
}

// The table as pieces that each lie in one shard: rows of neighbouring pages together, and last the
// directory, whose words are put in when the places are known.
Result<std::vector<UnwindShards::Piece>> UnwindShards::Cut(const unwind::Table& table) {
  std::vector<Piece> pieces;
  for (size_t page = 0; page < table.pages.size();) {
    Piece piece{.first_page = page};
    for (; page < table.pages.size() && piece.words + table.pages[page].count <= kMaxPieceWords; ++page)
      piece.words += table.pages[page].count;
    if (page == piece.first_page) return Fail(ErrorCode::kUnsupported, "more unwind rows than code");
    piece.pages = page - piece.first_page;
    pieces.push_back(piece);
  }
  if (!pieces.empty()) pieces.push_back({.words = static_cast<uint32_t>(2 * table.pages.size())});
  return pieces;
}

Result<UnwindShards::Placed> UnwindShards::Place(const unwind::Table& table) {
  ASSIGN_OR_RETURN(const std::vector<Piece> pieces, Cut(table));
  Placed placed{.directory = 0, .pages = static_cast<uint32_t>(table.pages.size())};
  if (pieces.empty()) return placed;
  if (!Allocate(pieces, placed)) {
    TRY(GrowFor(pieces));
    if (!Allocate(pieces, placed))
      return Fail(ErrorCode::kOutOfSpace, "all room for unwind tables is in use");
  }
  std::vector<uint32_t> directory;
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    const std::span pages = std::span(table.pages).subspan(pieces[i].first_page, pieces[i].pages);
    for (const unwind::Table::Page& page : pages) {
      directory.push_back(placed.blocks[i].first_word + (page.first - pages.front().first));
      directory.push_back(page.count);
    }
    TRY(Write(placed.blocks[i].first_word,
              std::span(table.rows).subspan(pages.front().first, pieces[i].words)));
  }
  placed.directory = placed.blocks.back().first_word;
  TRY(Write(placed.directory, directory));
  return placed;
}

bool UnwindShards::Allocate(const std::vector<Piece>& pieces, Placed& placed) {
  placed.blocks.clear();
  for (const Piece& piece : pieces) {
    for (uint32_t i = 0; i < shards_.size(); ++i)
      if (const auto first = shards_[i].words.Allocate(piece.words); first.has_value()) {
        placed.blocks.push_back({i * GPUSONDE_UNWIND_SHARD_WORDS + *first, piece.words});
        break;
      }
    if (&piece - pieces.data() + 1 == static_cast<ptrdiff_t>(placed.blocks.size())) continue;
    Remove(placed);
    return false;
  }
  return true;
}

Status UnwindShards::GrowFor(const std::vector<Piece>& pieces) {
  uint64_t words = 0;
  for (const Piece& piece : pieces) words += piece.words;
  // Less than a piece is left over in each.
  const uint64_t wanted = words / (GPUSONDE_UNWIND_SHARD_WORDS - kMaxPieceWords) + 1;
  const uint64_t room = GPUSONDE_UNWIND_SHARDS - shards_.size();
  if (wanted > room) return Fail(ErrorCode::kOutOfSpace, "all room for unwind tables is in use");
  return Grow(std::min(wanted + kSpareShards, room));
}

// The kernel waits for its programs after each change of the table of shards, some 15 to 40 ms, so that all
// are added in one.
Status UnwindShards::Grow(uint64_t wanted) {
  std::vector<uint32_t> keys;
  std::vector<int> fds;
  std::vector<Shard> made;
  for (uint64_t i = 0; i < wanted; ++i) {
    ASSIGN_OR_RETURN(Fd map, MakeShard());
    keys.push_back(static_cast<uint32_t>(shards_.size() + i));
    fds.push_back(map.get());
    made.push_back({.map = std::move(map)});
  }
  auto count = static_cast<uint32_t>(wanted);
  if (::bpf_map_update_batch(outer_.get(), keys.data(), fds.data(), &count, nullptr) != 0)
    return Fail(Explain(errno, "add room for unwind tables"));
  std::ranges::move(made, std::back_inserter(shards_));
  return {};
}

Status UnwindShards::Write(uint32_t first_word, std::span<const uint32_t> words) {
  const Shard& shard = shards_[first_word / GPUSONDE_UNWIND_SHARD_WORDS];
  // Mapped only while it is written, so that the tables are not part of this process as well.
  void* memory = ::mmap(nullptr, kShardBytes, PROT_READ | PROT_WRITE, MAP_SHARED, shard.map.get(), 0);
  if (memory == MAP_FAILED) return Fail(ErrnoError(errno, "map room for unwind tables"));
  std::memcpy(static_cast<uint32_t*>(memory) + first_word % GPUSONDE_UNWIND_SHARD_WORDS, words.data(),
              words.size_bytes());
  ::munmap(memory, kShardBytes);
  return {};
}

void UnwindShards::Remove(const Placed& placed) {
  for (const Placed::Block& block : placed.blocks)
    shards_[block.first_word / GPUSONDE_UNWIND_SHARD_WORDS].words.Free(
        block.first_word % GPUSONDE_UNWIND_SHARD_WORDS, block.words);
}

size_t UnwindShards::bytes() const { return shards_.size() * kShardBytes; }

}  // namespace gpusonde::ebpf
