// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/captured_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "store/each_row.h"
#include "store/sql/process_sql.h"

namespace gpusonde::store {
namespace {

// The node of a graph that ran is a clone of one in the graph before, and so on back to the one that was
// captured or made, which has the stack.
constexpr std::string_view kCapturedSql = R"(
  WITH RECURSIVE nodes AS (
    SELECT process, session, node, original_node, stack FROM {tables}graph_nodes WHERE true{selected}
  ), origins AS (
    SELECT process, session, node, original_node, stack, 0 AS steps FROM nodes
    UNION ALL
    SELECT origins.process, origins.session, origins.node, nodes.original_node, nodes.stack, steps + 1
    FROM origins JOIN nodes
      ON nodes.process = origins.process AND nodes.node = origins.original_node AND nodes.session <= origins.session
    WHERE origins.stack IS NULL AND origins.original_node IS NOT NULL AND steps < 16
  )
  SELECT process, node, session, min(stack) FROM origins WHERE stack IS NOT NULL
  GROUP BY process, node, session ORDER BY session)";

}  // namespace

Status CapturedNodes::Read() {
  SqlPart selected = AndOfProcesses(selection_);
  const SqlPart sql{
      fmt::format(kCapturedSql, fmt::arg("tables", tables_), fmt::arg("selected", selected.text)),
      std::move(selected.parameters)};
  return ForEachRow(ask_, sql, [this](const Rows& row) {
    stacks_[{row.Id(0), row.Int64(1)}].emplace_back(row.Int64(2), row.Id(3));
  });
}

Result<std::optional<Id128>> CapturedNodes::StackOf(const Id128& process, int64_t node, int64_t session) {
  if (!is_read_) TRY(Read());
  is_read_ = true;
  const auto found = stacks_.find({process, node});
  if (found == stacks_.end()) return std::nullopt;
  const Stacks& stacks = found->second;
  const auto later = std::ranges::upper_bound(stacks, session, {}, &Stacks::value_type::first);
  if (later == stacks.begin()) return std::nullopt;
  return std::prev(later)->second;
}

}  // namespace gpusonde::store
