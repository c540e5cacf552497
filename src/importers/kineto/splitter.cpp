// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/splitter.h"

#include <emmintrin.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace gpusonde::importers::kineto {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr size_t kMaxEventBytes = size_t{256} << 20;
constexpr size_t kMaxMetadataBytes = size_t{64} << 20;
constexpr std::string_view kEventsKey = "traceEvents";

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

struct Block {
  __m128i lanes[4];
};

// Bit i is set where byte i of the block is `c`, after setting the bits of `mask` in it.
uint64_t BytesEqual(const Block& block, char c, char mask = 0) {
  const __m128i wanted = _mm_set1_epi8(c);
  const __m128i bits = _mm_set1_epi8(mask);
  uint64_t found = 0;
  for (size_t i = 0; i < 4; ++i) {
    const __m128i equal = _mm_cmpeq_epi8(_mm_or_si128(block.lanes[i], bits), wanted);
    found |= uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(equal))} << (16 * i);
  }
  return found;
}

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

// Bit i is the parity of bits 0 to i: inside a string where quotes before are odd.
uint64_t PrefixParity(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

}  // namespace

// Counting bits is one instruction on every machine of the last ten years, and a call on those before.
__attribute__((target_clones("popcnt", "default"))) void EventSplitter::ScanBlock(const char* bytes,
                                                                                  size_t at, size_t size) {
  Block block;
  for (size_t i = 0; i < 4; ++i)
    block.lanes[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
  const uint64_t escaped = EscapedBytes(BytesEqual(block, '\\'), escaped_);
  const uint64_t quotes = BytesEqual(block, '"') & ~escaped;
  const uint64_t strings = PrefixParity(quotes) ^ (in_string_ ? ~uint64_t{0} : 0);
  in_string_ = strings >> 63 != 0;
  // '[' and '{', ']' and '}' differ by one bit.
  const uint64_t opening = BytesEqual(block, '{', 0x20) & ~strings;
  const uint64_t closing = BytesEqual(block, '}', 0x20) & ~strings;
  const int closed = std::popcount(closing);
  if (depth_ > closed) {
    depth_ += std::popcount(opening) - closed;
    return;
  }
  for (uint64_t brackets = opening | closing; brackets != 0; brackets &= brackets - 1) {
    const auto bit = static_cast<size_t>(std::countr_zero(brackets));
    if (bit >= size) return;
    if ((opening >> bit & 1) != 0) {
      ++depth_;
      continue;
    }
    if (--depth_ == 0) last_end_ = at + bit + 1;
    if (depth_ < 0) {
      array_end_ = at + bit;
      return;
    }
  }
}

void EventSplitter::Scan(bool at_end) {
  for (; scanned_ + kBlockBytes <= buffer_.size() && array_end_ == 0; scanned_ += kBlockBytes)
    ScanBlock(buffer_.data() + scanned_, scanned_, kBlockBytes);
  if (!at_end || array_end_ != 0 || scanned_ == buffer_.size()) return;
  std::array<char, kBlockBytes> tail;
  tail.fill(' ');
  std::memcpy(tail.data(), buffer_.data() + scanned_, buffer_.size() - scanned_);
  ScanBlock(tail.data(), scanned_, buffer_.size() - scanned_);
  scanned_ = buffer_.size();
}

Result<bool> EventSplitter::ReadMore() {
  const size_t before = buffer_.size();
  size_t count = 0;
  Error error;
  bool failed = false;
  buffer_.resize_and_overwrite(before + kChunkBytes, [&](char* data, size_t size) {
    auto read = source_.Read({data + before, size - before});
    failed = !read.has_value();
    if (failed)
      error = std::move(read).error();
    else
      count = *read;
    return before + count;
  });
  if (failed) return Fail(std::move(error));
  source_ended_ = count < kChunkBytes;
  return count > 0;
}

// Leaves in buffer_ what is behind the array's '[', and in metadata_ what is before.
Result<bool> EventSplitter::FindEvents() {
  size_t at = 0;
  int64_t depth = 0;
  bool in_string = false;
  bool escaped = false;
  bool key_seen = false;  // "traceEvents" was the last string at depth 1
  size_t string_begin = 0;
  while (true) {
    if (at == buffer_.size()) {
      if (buffer_.size() > kMaxMetadataBytes)
        return Fail(ErrorCode::kUnsupported,
                    fmt::format("{}: no traceEvents in the first {} bytes", source_.path(), at));
      if (source_ended_) break;
      TRY(ReadMore());
      continue;
    }
    const char c = buffer_[at++];
    if (in_string) {
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_string = false;
        key_seen =
            depth == 1 && std::string_view(buffer_).substr(string_begin, at - 1 - string_begin) == kEventsKey;
      }
      continue;
    }
    if (c == '"') {
      in_string = true;
      string_begin = at;
    } else if (c == '[' && (depth == 0 || (depth == 1 && key_seen))) {
      object_ = depth == 1;
      metadata_ = buffer_.substr(0, at - 1);
      consumed_ = at - 1;
      buffer_.erase(0, at - 1);
      return true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (!IsBlank(c) && c != ':') {
      key_seen = false;
    }
  }
  truncated_ = depth > 0 || in_string;
  if (truncated_)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: ends at byte {} before its events begin", source_.path(), at));
  return Fail(ErrorCode::kUnsupported, source_.path() + ": JSON without traceEvents; not a trace");
}

Status EventSplitter::ReadRest(size_t from) {
  std::string rest = buffer_.substr(from);
  while (!source_ended_ && rest.size() < kMaxMetadataBytes) {
    buffer_.clear();
    TRY(ReadMore());
    rest += buffer_;
  }
  metadata_ += "[]" + rest;
  return {};
}

size_t EventSplitter::CommaBehind(size_t end) const {
  if (end == 0) return 0;
  const size_t at = buffer_.find_first_not_of(" \t\r\n", end);
  return at != std::string::npos && buffer_[at] == ',' ? at : 0;
}

Result<bool> EventSplitter::Next(std::string& chunk) {
  if (finished_) return false;
  if (!begun_) {
    ASSIGN_OR_RETURN(const bool found, FindEvents());
    if (!found) return false;
    begun_ = true;
    scanned_ = 1;
  }
  size_t wanted = kChunkBytes;
  while (true) {
    Scan(source_ended_);
    if (array_end_ != 0 || source_ended_ || (buffer_.size() >= wanted && CommaBehind(last_end_) > 0)) break;
    if (buffer_.size() > kMaxEventBytes)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: an event of more than {} bytes at byte {}",
                                                   source_.path(), kMaxEventBytes, consumed_));
    if (buffer_.size() >= wanted) wanted += kChunkBytes;
    TRY(ReadMore());
  }
  finished_ = array_end_ != 0 || source_ended_;
  // What stands behind the last event is for the parser to judge too.
  const bool only_events =
      array_end_ == 0 || buffer_.find_first_not_of(" \t\r\n", std::max<size_t>(1, last_end_)) == array_end_;
  const size_t end = only_events ? last_end_ : array_end_;
  chunk.assign(buffer_, 0, end);
  if (end > 0) chunk += ']';
  consumed_ += end;
  if (!finished_) {
    const size_t comma = CommaBehind(end);
    consumed_ += comma - end;
    scanned_ = std::max(scanned_, comma + 1) - comma;
    last_end_ = 0;
    buffer_.erase(0, comma);
    buffer_[0] = '[';
    return true;
  }
  if (array_end_ != 0) {
    TRY(ReadRest(array_end_ + 1));
  } else {
    truncated_ = true;
    metadata_ += "[]";
    if (object_) metadata_ += '}';
  }
  return end > 0;
}

}  // namespace gpusonde::importers::kineto
