// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/short_names.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "base/printable.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kNameWidth = 70;
constexpr size_t kTail = 24;
constexpr size_t kHead = kNameWidth - kTail - 1;
// For names that must be distinguished: the length of their common head, and the context before the
// difference.
constexpr size_t kShortHead = 32;
constexpr size_t kContext = 12;

// The first character boundary at or after `at`.
size_t CharacterAt(std::string_view text, size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

std::string_view Slice(std::string_view text, size_t begin, size_t end) {
  begin = CharacterAt(text, begin);
  return text.substr(begin, CharacterAt(text, end) - begin);
}

std::string HeadAndTail(const std::string& text) {
  if (text.size() <= kNameWidth) return text;
  return std::string(Slice(text, 0, kHead)) + "…" +
         std::string(Slice(text, text.size() - kTail, text.size()));
}

// `width` bytes around a place, little of it before the place, with dots for what is cut.
std::string Around(const std::string& text, size_t place, size_t width) {
  const size_t begin =
      std::min(place - std::min(place, kContext), text.size() - std::min(text.size(), width));
  const size_t end = std::min(text.size(), begin + width);
  return (begin > 0 ? "…" : "") + std::string(Slice(text, begin, end)) + (end < text.size() ? "…" : "");
}

// The head and the surroundings of one place, or the surroundings of two.
std::string Around(const std::string& text, const std::vector<size_t>& places) {
  if (places.size() == 1) {
    if (places[0] < kShortHead + kContext) return Around(text, 0, kNameWidth - 1);
    return std::string(Slice(text, 0, kShortHead)) + Around(text, places[0], kNameWidth - kShortHead - 2);
  }
  const auto [first, second] = std::ranges::minmax(places);
  constexpr size_t kHalf = (kNameWidth - 3) / 2;
  if (second - first < kHalf) return Around(text, first, kNameWidth - 2);
  std::string both = Around(text, first, kHalf) + Around(text, second, kHalf);
  const size_t twice = both.find("……");
  if (twice != std::string::npos) both.erase(twice, std::string_view("…").size());
  return both;
}

size_t CommonBeginning(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

ShortNames::ShortNames(const std::vector<std::string_view>& names) {
  // Distinguishing some names may make them look like others: then they get a second place.
  for (int round = 0; round < 2; ++round) {
    std::map<std::string, std::vector<std::string_view>> alike;
    for (const std::string_view name : names)
      if (name.size() > kNameWidth) alike[(*this)(name)].push_back(name);
    for (auto& [shown, group] : alike) {
      std::ranges::sort(group);
      const auto repeated = std::ranges::unique(group);
      group.erase(repeated.begin(), repeated.end());
      if (group.size() > 1) Disambiguate(group);
    }
  }
}

void ShortNames::Disambiguate(std::span<const std::string_view> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    size_t common = 0;  // with its most similar neighbour
    if (i > 0) common = CommonBeginning(names[i], names[i - 1]);
    if (i + 1 < names.size()) common = std::max(common, CommonBeginning(names[i], names[i + 1]));
    differences_[names[i]].push_back(common);
  }
}

std::string ShortNames::operator()(std::string_view name) const {
  const std::string text = Printable(name);
  const auto found = differences_.find(name);
  return found != differences_.end() ? Around(text, found->second) : HeadAndTail(text);
}

}  // namespace gpusonde::analyze
