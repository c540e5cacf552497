// SPDX-License-Identifier: Apache-2.0
#include "analyze/rank_names.h"

#include <charconv>
#include <set>
#include <system_error>

#include "base/ascii.h"

namespace gpusonde::analyze {

std::optional<int64_t> RankInName(std::string_view path) {
  constexpr std::string_view kRank = "rank";
  const std::string name = ToLower(std::string(path.substr(path.rfind('/') + 1)));
  for (size_t at = name.rfind(kRank); at != std::string::npos;
       at = at == 0 ? at - 1 : name.rfind(kRank, at - 1)) {
    size_t digits = at + kRank.size();
    if (digits < name.size() && std::string_view("_-.=").contains(name[digits])) ++digits;
    int64_t rank = 0;
    const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), rank);
    const bool is_word = at == 0 || !IsLetter(name[at - 1]);
    if (is_word && digits < name.size() && IsDigit(name[digits]) && error == std::errc()) return rank;
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> RanksInNames(std::span<const std::string> paths) {
  std::vector<int64_t> numbers;
  for (const std::string& path : paths) {
    const std::optional<int64_t> number = RankInName(path);
    if (!number.has_value()) return std::nullopt;
    numbers.push_back(*number);
  }
  const std::set<int64_t> different(numbers.begin(), numbers.end());
  if (numbers.size() < 2 || different.size() != numbers.size()) return std::nullopt;
  return numbers;
}

}  // namespace gpusonde::analyze
