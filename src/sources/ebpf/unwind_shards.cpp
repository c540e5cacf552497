// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/unwind_shards.h"
#include "sources/ebpf/bpf_program.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace gpusonde::ebpf {
namespace {

// Size of the pieces of a table: small enough to waste little at the end of a shard, large enough that most
// libraries are a single piece.
constexpr uint32_t kMaxPieceWords = GPUSONDE_UNWIND_SHARD_WORDS / 4;
constexpr uint32_t kShardBytes = GPUSONDE_UNWIND_SHARD_WORDS * sizeof(uint32_t);
// Allocated at the start, so that the first program doesn't wait for them: node with its libraries needs six.
constexpr uint64_t kFirstShards = 8;
// Added beyond what a file needs, for later small files.
constexpr uint64_t kSpareShards = 2;
// The kernel's ENOTSUPP, which user space has no name for.
constexpr int kNotSupported = 524;

Result<Fd> MakeShard() {
  const bpf_map_create_opts options{.sz = sizeof options, .map_flags = BPF_F_MMAPABLE};
  Fd shard(::bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_shard", sizeof(uint32_t), kShardBytes, 1, &options));
  if (!shard.valid()) return Fail(Explain(errno, "allocate a shard for unwind tables"));
  return shard;
}

// After each update of the map of shards the kernel waits for running programs, some 15 to 40 ms, so all are
// added in one update, which Linux has since 5.19. False with errno set.
bool Insert(int outer, const std::vector<uint32_t>& keys, const std::vector<int>& fds) {
  auto count = static_cast<uint32_t>(keys.size());
  if (::bpf_map_update_batch(outer, keys.data(), fds.data(), &count, nullptr) == 0) return true;
  if (errno != kNotSupported) return false;
  for (size_t i = 0; i < keys.size(); ++i)
    if (::bpf_map_update_elem(outer, &keys[i], &fds[i], BPF_ANY) != 0) return false;
  return true;
}

}  // namespace

Result<UnwindShards> UnwindShards::Create() {
  // The template from which the kernel learns the size of shards.
  ASSIGN_OR_RETURN(const Fd example, MakeShard());
  const bpf_map_create_opts options{.sz = sizeof options,
                                    .inner_map_fd = static_cast<uint32_t>(example.get())};
  Fd outer(::bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "unwind_shards", sizeof(uint32_t), sizeof(uint32_t),
                            GPUSONDE_UNWIND_SHARDS, &options));
  if (!outer.valid()) return Fail(Explain(errno, "create the BPF map of unwind tables"));
  UnwindShards shards(std::move(outer));
  TRY(shards.Grow(kFirstShards));
  return shards;
}

// Cuts the table into pieces that each fit into one shard: the rows of adjacent pages, and last the
// directory, which is filled in once the pieces' positions are known.
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
      return Fail(ErrorCode::kOutOfSpace, "the memory for unwind tables is full");
  }
  placed.directory = placed.blocks.back().first_word;
  if (Status written = WritePieces(table, pieces, placed); !written.has_value()) {
    Remove(placed);
    return Fail(std::move(written).error());
  }
  return placed;
}

Status UnwindShards::WritePieces(const unwind::Table& table, const std::vector<Piece>& pieces,
                                 const Placed& placed) {
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
  return Write(placed.directory, directory);
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
  // At the end of each shard less than a piece is wasted.
  const uint64_t wanted = words / (GPUSONDE_UNWIND_SHARD_WORDS - kMaxPieceWords) + 1;
  const uint64_t room = GPUSONDE_UNWIND_SHARDS - shards_.size();
  if (wanted > room) return Fail(ErrorCode::kOutOfSpace, "the memory for unwind tables is full");
  return Grow(std::min(wanted + kSpareShards, room));
}

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
  if (!Insert(outer_.get(), keys, fds)) return Fail(Explain(errno, "add shards for unwind tables"));
  std::ranges::move(made, std::back_inserter(shards_));
  return {};
}

Status UnwindShards::Write(uint32_t first_word, std::span<const uint32_t> words) {
  const Shard& shard = shards_[first_word / GPUSONDE_UNWIND_SHARD_WORDS];
  // Mapped only while it is written, so that the tables don't count as memory of this process.
  void* memory = ::mmap(nullptr, kShardBytes, PROT_READ | PROT_WRITE, MAP_SHARED, shard.map.get(), 0);
  if (memory == MAP_FAILED) return Fail(ErrnoError(errno, "map a shard for unwind tables"));
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
