// SPDX-License-Identifier: Apache-2.0
#include "importers/decimal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/ascii.h"
#include "base/int128.h"
#include "base/text.h"
#include "importers/event.h"

namespace gpusonde::importers {
namespace {

constexpr int kNanosDigits = 3;  // a µs is 10^3 ns
// Further digits can't change the result: 2^61 has 19.
constexpr int kMaxDigits = 36;
constexpr int kMaxExponent = 40;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

// ±digits · 10^exponent
struct Scientific {
  bool negative = false;
  Uint128 digits = 0;
  int exponent = 0;
};

std::optional<Scientific> Scan(std::string_view text) {
  Scientific number;
  number.negative = !text.empty() && text.front() == '-';
  if (number.negative) text.remove_prefix(1);
  if (text.empty() || !IsDigit(text.front())) return std::nullopt;
  bool point = false;
  int kept = 0;
  size_t i = 0;
  for (; i < text.size() && (IsDigit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    if (kept < kMaxDigits) {
      number.digits = number.digits * 10 + static_cast<unsigned>(text[i] - '0');
      if (number.digits != 0) ++kept;
      if (point) --number.exponent;
    } else if (!point) {
      ++number.exponent;
    }
    if (number.exponent > kMaxExponent) return std::nullopt;
  }
  if (!IsDigit(text[i - 1])) return std::nullopt;  // "1."
  if (i == text.size()) return number;
  if (text[i] != 'e' && text[i] != 'E') return std::nullopt;
  ++i;
  if (i < text.size() && text[i] == '+') ++i;
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  number.exponent += std::clamp(exponent, -10'000, 10'000);
  return number;
}

std::optional<int64_t> Scale(const Scientific& number, int by) {
  int exponent = number.exponent + by;
  Uint128 value = number.digits;
  constexpr Uint128 kLimit = static_cast<Uint128>(kMaxTimeNs);
  for (; exponent > 0 && value != 0; --exponent) {
    value *= 10;
    if (value > kLimit) return std::nullopt;
  }
  Uint128 last = 0;
  for (; exponent < 0 && (value != 0 || last != 0); ++exponent) {
    last = value % 10;
    value /= 10;
  }
  if (last >= 5) ++value;
  if (value > kLimit) return std::nullopt;
  const auto result = static_cast<int64_t>(value);
  return number.negative ? -result : result;
}

// Empty if it has a fraction, or doesn't fit.
std::optional<int64_t> WholeOf(const Scientific& number) {
  Uint128 value = number.digits;
  int exponent = number.exponent;
  for (; exponent < 0 && value % 10 == 0 && value != 0; ++exponent) value /= 10;
  if (exponent < 0 && value != 0) return std::nullopt;
  constexpr auto kLimit = static_cast<Uint128>(std::numeric_limits<int64_t>::max());
  for (; exponent > 0 && value != 0 && value <= kLimit; --exponent) value *= 10;
  if (value > kLimit) return std::nullopt;
  const auto result = static_cast<int64_t>(value);
  return number.negative ? -result : result;
}

}  // namespace

std::optional<int64_t> ParseMicroseconds(std::string_view text) {
  // The common case: up to 16 digits, as µs since 1970 have, and up to three after the point.
  constexpr size_t kFewDigits = 16;
  uint64_t scaled = 0;
  size_t at = 0;
  while (at < std::min(text.size(), kFewDigits) && IsDigit(text[at]))
    scaled = scaled * 10 + static_cast<unsigned>(text[at++] - '0');
  bool complete = at > 0;
  size_t behind = 0;
  if (complete && at < text.size() && text[at] == '.') {
    ++at;
    for (; at < text.size() && behind < kNanosDigits && IsDigit(text[at]); ++behind)
      scaled = scaled * 10 + static_cast<unsigned>(text[at++] - '0');
    complete = behind > 0;  // not "1."
  }
  while (at < text.size() && IsSpace(text[at])) ++at;
  if (complete && at == text.size()) {
    constexpr std::array<uint64_t, kNanosDigits + 1> kScale = {1000, 100, 10, 1};
    scaled *= kScale[behind];  // below 10^19
    if (scaled <= static_cast<uint64_t>(kMaxTimeNs)) return static_cast<int64_t>(scaled);
  }
  return ParseScaled(text, kNanosDigits);
}

std::optional<int64_t> ParseScaled(std::string_view text, int exponent) {
  const std::optional<Scientific> number = Scan(Trim(text));
  return number.has_value() ? Scale(*number, exponent) : std::nullopt;
}

std::optional<int64_t> ParseWhole(std::string_view text) {
  // The common case: a few digits, and the blanks that JSON may have after them.
  constexpr size_t kFewDigits = 18;
  uint64_t few = 0;
  size_t digits = 0;
  while (digits < std::min(text.size(), kFewDigits) && IsDigit(text[digits]))
    few = few * 10 + static_cast<unsigned>(text[digits++] - '0');
  if (digits > 0 && (digits == text.size() || (IsSpace(text[digits]) && Trim(text).size() == digits)))
    return static_cast<int64_t>(few);
  text = Trim(text);
  if (const std::optional<int64_t> plain = ParseNumber<int64_t>(text); plain.has_value()) return plain;
  const std::optional<Scientific> number = Scan(text);
  return number.has_value() ? WholeOf(*number) : std::nullopt;
}

}  // namespace gpusonde::importers
