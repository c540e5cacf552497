// SPDX-License-Identifier: Apache-2.0
#include "importers/ncu/number.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "importers/decimal.h"

namespace gpusonde::importers::ncu {
namespace {

// No number of a metric is longer; longer values are texts.
constexpr size_t kMaxLength = 64;

bool LooksLikeNumber(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() && text.size() <= kMaxLength && IsDigit(text[0]);
}

}  // namespace

void DecimalMarkFinder::Look(std::string_view number) {
  if (!LooksLikeNumber(number)) return;
  const auto points = std::ranges::count(number, '.');
  const auto commas = std::ranges::count(number, ',');
  if (points + commas == 0) return;
  const size_t last = number.find_last_of(".,");
  const bool last_is_point = number[last] == '.';
  if (points > 0 && commas > 0) {  // the decimal mark comes last
    ++(last_is_point ? points_ : commas_);
  } else if (points + commas > 1) {  // only digits are grouped more than once
    ++(last_is_point ? commas_ : points_);
  } else {
    // With one mark, groups have exactly three digits after it and one to three before, the first of which
    // isn't zero.
    const size_t sign = number[0] == '-' ? 1 : 0;
    const size_t in_front = last - sign;
    const bool may_group = number.size() - last - 1 == 3 && in_front <= 3 && number[sign] != '0';
    if (!may_group) ++(last_is_point ? points_ : commas_);
  }
}

std::optional<int64_t> ParseNumber(std::string_view text, DecimalMark mark, int exponent) {
  if (!LooksLikeNumber(text)) return std::nullopt;
  const char decimal = mark == DecimalMark::kPoint ? '.' : ',';
  const char group = mark == DecimalMark::kPoint ? ',' : '.';
  std::array<char, kMaxLength> plain{};
  size_t size = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    // U+00A0, U+202F (as UTF-8), a blank and an apostrophe group digits in some locales.
    if (c == group || c == ' ' || c == '\'') continue;
    if (text.substr(i).starts_with("\xC2\xA0")) {
      ++i;
    } else if (text.substr(i).starts_with("\xE2\x80\xAF") || text.substr(i).starts_with("\xE2\x80\x99")) {
      i += 2;
    } else {
      plain[size++] = c == decimal ? '.' : c;
    }
  }
  return ParseScaled(std::string_view(plain.data(), size), exponent);
}

}  // namespace gpusonde::importers::ncu
