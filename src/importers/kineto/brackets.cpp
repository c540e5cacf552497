// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/brackets.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>

namespace gpusonde::importers::kineto {
namespace {

// Blocks that are classified before they are followed: 1 KiB of bits, in the first-level cache.
constexpr size_t kBlocksBatch = 32;

// Bytes that a backslash before them escapes; `carry` is whether the first one is, and becomes whether the
// byte behind the block is.
uint64_t EscapedBytes(uint64_t backslashes, bool& carry) {
  uint64_t escaped = carry ? 1 : 0;
  carry = false;
  while (backslashes != 0) {
    const int at = std::countr_zero(backslashes);
    backslashes &= backslashes - 1;
    if ((escaped >> at & 1) != 0) continue;  // itself escaped
    if (at == 63)
      carry = true;
    else
      escaped |= uint64_t{2} << at;
  }
  return escaped;
}

// Bit i is the parity of bits 0 to i: inside a string where the number of quotes before is odd.
uint64_t PrefixParity(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

// '[' and '{', ']' and '}' differ by one bit.
constexpr char kBracketBit = 0x20;

}  // namespace

__attribute__((target("avx2"))) void BracketScanner::ClassifyWithAvx2(const char* bytes, Block* blocks,
                                                                      size_t count) {
  const __m256i backslash = _mm256_set1_epi8('\\');
  const __m256i quote = _mm256_set1_epi8('"');
  const __m256i opening = _mm256_set1_epi8('{');
  const __m256i closing = _mm256_set1_epi8('}');
  const __m256i bit = _mm256_set1_epi8(kBracketBit);
  for (size_t i = 0; i < count; ++i) {
    Block block;
    for (size_t half = 0; half < 2; ++half) {
      const __m256i lane =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + kBlockBytes * i + 32 * half));
      const __m256i brackets = _mm256_or_si256(lane, bit);
      const size_t shift = 32 * half;
      block.backslashes |=
          uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(lane, backslash)))} << shift;
      block.quotes |= uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(lane, quote)))}
                      << shift;
      block.opening |=
          uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(brackets, opening)))}
          << shift;
      block.closing |=
          uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(brackets, closing)))}
          << shift;
    }
    blocks[i] = block;
  }
}

void BracketScanner::ClassifyWithSse2(const char* bytes, Block* blocks, size_t count) {
  const auto equal = [](__m128i lane, char c) {
    return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(lane, _mm_set1_epi8(c))))};
  };
  for (size_t i = 0; i < count; ++i) {
    Block block;
    for (size_t quarter = 0; quarter < 4; ++quarter) {
      const __m128i lane =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + kBlockBytes * i + 16 * quarter));
      const __m128i brackets = _mm_or_si128(lane, _mm_set1_epi8(kBracketBit));
      const size_t shift = 16 * quarter;
      block.backslashes |= equal(lane, '\\') << shift;
      block.quotes |= equal(lane, '"') << shift;
      block.opening |= equal(brackets, '{') << shift;
      block.closing |= equal(brackets, '}') << shift;
    }
    blocks[i] = block;
  }
}

bool BracketScanner::HasAvx2() {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  return has_avx2;
}

void BracketScanner::Classify(const char* bytes, Block* blocks, size_t count) const {
  if (with_avx2_)
    ClassifyWithAvx2(bytes, blocks, count);
  else
    ClassifyWithSse2(bytes, blocks, count);
}

#ifdef __SANITIZE_THREAD__
// The function that chooses a clone runs before ThreadSanitizer does, and crashes.
#define GPUSONDE_POPCNT_CLONES
#else
// Counting bits is one instruction on every machine of the last ten years, and a call on those before.
#define GPUSONDE_POPCNT_CLONES __attribute__((target_clones("popcnt", "default")))
#endif

GPUSONDE_POPCNT_CLONES void BracketScanner::Follow(const Block* blocks, size_t count, size_t at) {
  for (size_t i = 0; i < count; ++i, at += kBlockBytes) {
    const Block& block = blocks[i];
    uint64_t quotes = block.quotes;
    if (block.backslashes != 0 || escaped_) quotes &= ~EscapedBytes(block.backslashes, escaped_);
    const uint64_t strings = PrefixParity(quotes) ^ (in_string_ ? ~uint64_t{0} : 0);
    in_string_ = strings >> 63 != 0;
    const uint64_t opening = block.opening & ~strings;
    const uint64_t closing = block.closing & ~strings;
    const int closed = std::popcount(closing);
    if (depth_ > closed) {
      depth_ += std::popcount(opening) - closed;
      continue;
    }
    FollowBrackets(opening, closing, at);
    if (array_end_ != 0) return;
  }
}

void BracketScanner::FollowBrackets(uint64_t opening, uint64_t closing, size_t at) {
  for (uint64_t brackets = opening | closing; brackets != 0; brackets &= brackets - 1) {
    const auto bit = static_cast<size_t>(std::countr_zero(brackets));
    if ((opening >> bit & 1) != 0) {
      ++depth_;
      continue;
    }
    if (--depth_ == 0) ends_.push_back(static_cast<uint32_t>(at + bit + 1));
    if (depth_ < 0) {
      array_end_ = at + bit;
      return;
    }
  }
}

size_t BracketScanner::Scan(std::string_view text, size_t scanned, bool at_end) {
  std::array<Block, kBlocksBatch> blocks;
  while (array_end_ == 0 && scanned + kBlockBytes <= text.size()) {
    const size_t count = std::min(kBlocksBatch, (text.size() - scanned) / kBlockBytes);
    Classify(text.data() + scanned, blocks.data(), count);
    Follow(blocks.data(), count, scanned);
    scanned += count * kBlockBytes;
  }
  if (!at_end || array_end_ != 0 || scanned >= text.size()) return scanned;
  std::array<char, kBlockBytes> tail;
  tail.fill(' ');
  std::ranges::copy(text.substr(scanned), tail.begin());
  Classify(tail.data(), blocks.data(), 1);
  Follow(blocks.data(), 1, scanned);
  return text.size();
}

}  // namespace gpusonde::importers::kineto
