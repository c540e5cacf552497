// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/critical_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analyze/report/quantities.h"
#include "base/printable.h"

namespace gpusonde::analyze {
namespace {

struct KindText {
  std::string_view kind;
  size_t column;
  std::string_view text;  // before the part's name
};

constexpr std::array kKindTexts = {
    KindText{"compute", 0, "kernel"},
    KindText{"graph", 0, "graph"},
    KindText{"communication", 1, "communication kernel"},
    KindText{"rank_wait", 2, "collectives before the last rank came:"},
    KindText{"transfer", 3, ""},
    KindText{"launch", 4, "from launching calls to starts"},
    KindText{"call", 4, "host in call"},
    KindText{"operator", 5, "host in"},
    KindText{"host", 5, "host outside of operators and calls"},
    KindText{"sync", 6, "from the end of work to the return of"},
    KindText{"gap", 7, "gaps between work of a stream"},
    KindText{"stream_wait", 7, "after another stream's work"},
    KindText{"unknown", 7, "unknown"},
};

const KindText& KindTextOf(std::string_view kind) {
  return *std::ranges::find(kKindTexts, kind, &KindText::kind);
}

}  // namespace

std::array<int64_t, kPathColumns.size()> PathColumnsOf(const CriticalPathLine& path) {
  std::array<int64_t, kPathColumns.size()> columns{};
  for (const CriticalPathLine::Part& part : path.parts)
    columns[KindTextOf(part.kind).column] += part.total_ns;
  return columns;
}

std::string PathPartText(const CriticalPathLine::Part& part, const model::ShortNames& shown) {
  const std::string_view text = KindTextOf(part.kind).text;
  if (part.name.empty()) return std::string(text);
  return fmt::format("{}{}{}", text, text.empty() ? "" : " ", shown(part.name));
}

std::optional<std::string> CriticalPathSentence(const Report& report, const model::ShortNames& shown) {
  const CriticalPathLine* longest = nullptr;
  for (const CriticalPathLine& path : report.critical_paths)
    if (!path.slow && !path.parts.empty() &&
        (longest == nullptr || path.end_ns - path.begin_ns > longest->end_ns - longest->begin_ns))
      longest = &path;
  if (longest == nullptr) return std::nullopt;
  const auto columns = PathColumnsOf(*longest);
  std::array<size_t, columns.size()> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&columns](size_t i) { return columns[i]; });
  const int64_t whole_ns = longest->end_ns - longest->begin_ns;
  return fmt::format(
      "The critical path of a typical step of rank {} ({} on the device) is {} {} and {} {}; its largest "
      "part is "
      "{}, without which a step would take {} less at most.",
      longest->rank, Time(whole_ns), Percent(columns[order[0]], whole_ns), kPathColumns[order[0]],
      Percent(columns[order[1]], whole_ns), kPathColumns[order[1]],
      PathPartText(longest->parts.front(), shown), Time(longest->parts.front().total_ns));
}

}  // namespace gpusonde::analyze
