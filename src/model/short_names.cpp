// SPDX-License-Identifier: Apache-2.0
#include "model/short_names.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "base/ascii.h"
#include "base/printable.h"

namespace gpusonde::model {
namespace {

// The first character boundary at or after `at`.
size_t CharacterAt(std::string_view text, size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

std::string_view Slice(std::string_view text, size_t begin, size_t end) {
  begin = CharacterAt(text, begin);
  return text.substr(begin, CharacterAt(text, end) - begin);
}

// Shares of the width: of the end where nothing else needs it, and of the beginning of names that begin
// alike.
size_t TailOf(size_t width) { return width / 3; }
size_t HeadOf(size_t width) { return width - TailOf(width) - 1; }
size_t ShortHeadOf(size_t width) { return width * 2 / 5; }

std::string HeadAndTail(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  return std::string(Slice(text, 0, HeadOf(width))) + "…" +
         std::string(Slice(text, text.size() - TailOf(width), text.size()));
}

bool IsIdentifier(char c) { return IsLetterOrDigit(c) || c == '_'; }

// `width` bytes from the beginning of the word at a place, with dots for what is cut.
std::string From(const std::string& text, size_t place, size_t width) {
  size_t begin = place;
  while (begin > 0 && place - begin < width / 3 && IsIdentifier(text[begin - 1])) --begin;
  begin = std::min(begin, text.size() - std::min(text.size(), width));
  const size_t end = std::min(text.size(), begin + width);
  return (begin > 0 ? "…" : "") + std::string(Slice(text, begin, end)) + (end < text.size() ? "…" : "");
}

// The head and the surroundings of one or two places.
std::string Around(const std::string& text, const std::vector<size_t>& places, size_t width) {
  const auto [first, second] = std::ranges::minmax(places);
  const size_t head = ShortHeadOf(width);
  if (second < head + width / 3) return From(text, 0, width - 1);
  if (second - first < width / 3)
    return std::string(Slice(text, 0, head)) + From(text, first, width - head - 2);
  const size_t third = (width - 3) / 3;
  std::string all = first < third ? From(text, 0, 2 * third)
                                  : std::string(Slice(text, 0, third)) + From(text, first, third);
  all += From(text, second, third);
  const size_t twice = all.find("……");
  if (twice != std::string::npos) all.erase(twice, std::string_view("…").size());
  return all;
}

size_t CommonBeginning(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

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
  return next == '-' || IsDigit(next) ? end + 1 : 0;
}

struct Named {
  std::string_view text;
  std::vector<size_t>* differences;
};

// Adds to each name where it differs from the most similar other one.
void Disambiguate(std::vector<Named>& names) {
  std::ranges::sort(names, {}, &Named::text);
  for (size_t i = 0; i < names.size(); ++i) {
    size_t common = 0;
    if (i > 0) common = CommonBeginning(names[i].text, names[i - 1].text);
    if (i + 1 < names.size()) common = std::max(common, CommonBeginning(names[i].text, names[i + 1].text));
    names[i].differences->push_back(common);
  }
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

ShortNames::ShortNames(const std::vector<std::string_view>& names, size_t width) : width_(width) {
  std::map<std::string, std::vector<std::string_view>> condensed;
  for (const std::string_view name : names)
    if (shown_.try_emplace(name, Printable(name)).second)
      condensed[name.size() > width_ ? Printable(CondensedName(name)) : Printable(name)].push_back(name);
  for (const auto& [text, same] : condensed)
    if (same.size() == 1) shown_.at(same.front()).text = text;
  // Names with the same beginning are distinguished, and those that look the same even so a second time.
  for (const bool by_beginning : {true, false}) {
    std::map<std::string, std::vector<Named>> alike;
    for (auto& [name, shown] : shown_)
      if (shown.text.size() > width_)
        alike[by_beginning ? shown.text.substr(0, ShortHeadOf(width_)) : Shorten(shown)].emplace_back(
            shown.text, &shown.differences);
    for (auto& [text, group] : alike)
      if (group.size() > 1) Disambiguate(group);
  }
}

std::string ShortNames::Shorten(const Shown& shown) const {
  return shown.differences.empty() ? HeadAndTail(shown.text, width_)
                                   : Around(shown.text, shown.differences, width_);
}

std::string ShortNames::operator()(std::string_view name) const {
  const auto found = shown_.find(name);
  if (found != shown_.end()) return Shorten(found->second);
  return HeadAndTail(Printable(name.size() > width_ ? CondensedName(name) : name), width_);
}

}  // namespace gpusonde::model
