// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/short_names.h"

#include <algorithm>
#include <cctype>
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

// The head and the surroundings of one or two places.
std::string Around(const std::string& text, const std::vector<size_t>& places) {
  const auto [first, second] = std::ranges::minmax(places);
  const bool together = second - first < kNameWidth - kShortHead - kContext;
  if (together && second < kNameWidth - kContext) return Around(text, 0, kNameWidth - 1);
  if (together)
    return std::string(Slice(text, 0, kShortHead)) + Around(text, first, kNameWidth - kShortHead - 2);
  constexpr size_t kThird = (kNameWidth - 3) / 3;
  std::string all = (first < kThird ? "" : std::string(Slice(text, 0, kThird))) +
                    Around(text, first, first < kThird ? 2 * kThird : kThird) + Around(text, second, kThird);
  const size_t twice = all.find("……");
  if (twice != std::string::npos) all.erase(twice, std::string_view("…").size());
  return all;
}

size_t CommonBeginning(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

bool IsIdentifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "void f<int>" of "void f<int>(int*, T1) [clone .kd]".
std::string_view WithoutSignature(std::string_view name) {
  constexpr std::string_view kClone = " [clone .kd]";  // of AMD's kernel descriptors
  if (name.ends_with(kClone)) name.remove_suffix(kClone.size());
  if (!name.ends_with(')')) return name;
  size_t open = 0;
  for (size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++open;
    if (name[at] == '(' && --open == 0)
      return at > 0 && (IsIdentifier(name[at - 1]) || name[at - 1] == '>') ? name.substr(0, at) : name;
  }
  return name;
}

// The length of "(anonymous namespace)::" at the beginning of the text; 0 if it begins otherwise.
size_t UnnamedIn(std::string_view text) {
  for (const std::string_view unnamed : {"(anonymous namespace)::", "<unnamed>::"})
    if (text.starts_with(unnamed)) return unnamed.size();
  return 0;
}

// The length of a qualifier like "at::" at the beginning of the text, before what it qualifies; 0 if there is
// none.
size_t QualifierIn(std::string_view text) {
  if (const size_t unnamed = UnnamedIn(text); unnamed != 0) return unnamed;
  const auto end = static_cast<size_t>(std::ranges::find_if_not(text, IsIdentifier) - text.begin());
  const std::string_view rest = text.substr(end);
  if (end == 0 || !rest.starts_with("::") || rest.starts_with("::operator")) return 0;
  const std::string_view next = rest.substr(2);
  return !next.empty() && (IsIdentifier(next[0]) || UnnamedIn(next) != 0) ? end + 2 : 0;
}

// The length of "void " at the beginning of a function with that return type; 0 if the text begins otherwise.
size_t ReturnTypeIn(std::string_view text) {
  constexpr std::string_view kVoid = "void ";
  const std::string_view next = text.starts_with(kVoid) ? text.substr(kVoid.size()) : "";
  const bool function =
      !next.empty() && !next.starts_with("const") && (IsIdentifier(next[0]) || UnnamedIn(next) != 0);
  return function ? kVoid.size() : 0;
}

// The length of "(int)" at the beginning of "(int)128"; 0 if the text begins otherwise.
size_t CastIn(std::string_view text) {
  if (!text.starts_with('(')) return 0;
  const auto is_type = [](char c) { return IsIdentifier(c) || c == ':' || c == ' '; };
  const auto end = static_cast<size_t>(std::ranges::find_if_not(text.substr(1), is_type) - text.begin());
  if (end + 1 >= text.size() || text[end] != ')') return 0;
  const char next = text[end + 1];
  return next == '-' || std::isdigit(static_cast<unsigned char>(next)) != 0 ? end + 1 : 0;
}

}  // namespace

std::string CondensedName(std::string_view name) {
  name = WithoutSignature(name);
  std::string text;
  while (!name.empty()) {
    const char before = text.empty() ? ' ' : text.back();
    size_t left_out = IsIdentifier(before) ? 0 : std::max(QualifierIn(name), ReturnTypeIn(name));
    if (std::string_view("<, (").contains(before)) left_out = std::max(left_out, CastIn(name));
    if (left_out == 0) text += name.front();
    name.remove_prefix(std::max(left_out, size_t{1}));
  }
  return text;
}

ShortNames::ShortNames(const std::vector<std::string_view>& names) {
  std::map<std::string, std::vector<std::string_view>> condensed;
  for (const std::string_view name : names)
    if (shown_.try_emplace(name, Printable(name)).second)
      condensed[name.size() > kNameWidth ? Printable(CondensedName(name)) : Printable(name)].push_back(name);
  for (const auto& [text, same] : condensed)
    if (same.size() == 1) shown_.at(same.front()).text = text;
  // Names with the same beginning are distinguished, and those that look the same even so a second time.
  for (const bool by_beginning : {true, false}) {
    std::map<std::string, std::vector<Shown*>> alike;
    for (auto& [name, shown] : shown_)
      if (shown.text.size() > kNameWidth)
        alike[by_beginning ? shown.text.substr(0, kHead - kContext) : Shorten(shown)].push_back(&shown);
    for (auto& [text, group] : alike)
      if (group.size() > 1) {
        std::ranges::sort(group, {}, &Shown::text);
        Disambiguate(group);
      }
  }
}

void ShortNames::Disambiguate(std::span<Shown* const> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    size_t common = 0;  // with its most similar neighbour
    if (i > 0) common = CommonBeginning(names[i]->text, names[i - 1]->text);
    if (i + 1 < names.size()) common = std::max(common, CommonBeginning(names[i]->text, names[i + 1]->text));
    names[i]->differences.push_back(common);
  }
}

std::string ShortNames::Shorten(const Shown& shown) {
  return shown.differences.empty() ? HeadAndTail(shown.text) : Around(shown.text, shown.differences);
}

std::string ShortNames::operator()(std::string_view name) const {
  const auto found = shown_.find(name);
  if (found != shown_.end()) return Shorten(found->second);
  return HeadAndTail(Printable(name.size() > kNameWidth ? CondensedName(name) : name));
}

}  // namespace gpusonde::analyze
