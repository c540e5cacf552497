// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/concurrency.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "analyze/report/quantities.h"

namespace gpusonde::analyze {

std::vector<const ConcurrencyLine*> RanksByConcurrency(const Report& report) {
  std::vector<const ConcurrencyLine*> ranks;
  for (const ConcurrencyLine& line : report.concurrency)
    if (line.streams.size() > 1) ranks.push_back(&line);
  std::ranges::stable_sort(ranks, std::greater<>(), &ConcurrencyLine::several_ns);
  return ranks;
}

std::optional<std::string> ConcurrencySentence(const Report& report) {
  const std::vector<const ConcurrencyLine*> ranks = RanksByConcurrency(report);
  if (ranks.empty() || ranks[0]->several_ns() <= ranks[0]->busy_ns() / 100) return std::nullopt;
  const ConcurrencyLine& most = *ranks[0];
  std::string text = fmt::format(
      "Rank {} had several GPU events at the same time for {} of its busy time, {:.2f} on average", most.rank,
      Percent(most.several_ns(), most.busy_ns()), most.mean);
  if (!most.pairs.empty())
    text += fmt::format("; {} most, {}", PairText(most.pairs[0]), Time(most.pairs[0].shared_ns));
  return text + ".";
}

KindMatrix KindMatrixOf(const ConcurrencyLine& line) {
  KindMatrix matrix;
  const auto shared_ns = [&line](std::string_view one, std::string_view other) {
    for (const ConcurrencyLine::Kinds& kinds : line.kinds)
      if ((kinds.first == one && kinds.second == other) || (kinds.first == other && kinds.second == one))
        return kinds.shared_ns;
    return int64_t{0};
  };
  for (const ConcurrencyLine::KindTime& time : line.kind_times)
    if (std::ranges::any_of(line.kinds, [&time](const ConcurrencyLine::Kinds& kinds) {
          return kinds.first == time.kind || kinds.second == time.kind;
        }))
      matrix.kinds.push_back(time);
  for (const ConcurrencyLine::KindTime& row : matrix.kinds) {
    std::vector<int64_t>& cells = matrix.shared_ns.emplace_back();
    for (const ConcurrencyLine::KindTime& column : matrix.kinds)
      cells.push_back(shared_ns(row.kind, column.kind));
  }
  return matrix;
}

std::string PairText(const ConcurrencyLine::Pair& pair) {
  return pair.second.has_value()
             ? fmt::format("streams {} and {}", StreamText(pair.first), StreamText(pair.second))
             : fmt::format("stream {} and those beyond the first 64", StreamText(pair.first));
}

std::string StreamCount(const ConcurrencyLine& line) {
  return HasOthers(line) ? fmt::format("over {}", line.streams.size() - 1)
                         : fmt::format("{}", line.streams.size());
}

bool HasOthers(const ConcurrencyLine& line) {
  return std::ranges::any_of(line.streams, [](const auto& stream) { return !stream.stream.has_value(); });
}

std::string StreamText(ConcurrencyLine::StreamNumber stream) {
  return stream.has_value() ? fmt::format("{}", *stream) : "(other)";
}

}  // namespace gpusonde::analyze
