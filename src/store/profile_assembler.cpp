// SPDX-License-Identifier: Apache-2.0
#include "store/profile_assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

namespace gpusonde::store {
namespace {

// Rows of several kinds, told apart by `part`.
constexpr std::string_view kProfileSql = R"(
  WITH used AS MATERIALIZED (
    SELECT process, tid, stack, state, sum(count)::BIGINT AS count, sum(weight_ns)::BIGINT AS weight_ns
    FROM {} GROUP BY ALL
  ), used_stacks AS MATERIALIZED (
    SELECT stack, any_value(locations) AS locations FROM raw.stacks
    WHERE stack IN (SELECT stack FROM used) GROUP BY stack
  ), used_locations AS MATERIALIZED (
    SELECT * FROM raw.locations WHERE location IN (SELECT unnest(locations) FROM used_stacks)
  )
  SELECT 0 AS part, process, tid, stack AS id, count, weight_ns, state AS text FROM used
  UNION ALL BY NAME SELECT 1 AS part, stack AS id, locations AS ids FROM used_stacks
  UNION ALL BY NAME
    SELECT 2 AS part, location AS id, kind AS text, binary_id, address, functions AS ids, lines FROM used_locations
  UNION ALL BY NAME
    SELECT 3 AS part, function AS id, name AS text, system_name AS text2, file AS text3, line FROM raw.functions
    WHERE function IN (SELECT unnest(functions) FROM used_locations)
  UNION ALL BY NAME
    SELECT 4 AS part, binary_id AS id, name AS text, path AS text2, build_id AS text3 FROM raw.binaries
    WHERE binary_id IN (SELECT binary_id FROM used_locations)
  UNION ALL BY NAME
    SELECT 5 AS part, process, pid AS tid, name AS text FROM processes WHERE process IN (SELECT process FROM used)
  UNION ALL BY NAME
    SELECT 6 AS part, process, tid, name AS text FROM threads WHERE process IN (SELECT process FROM used))";

enum Part : int64_t { kSample, kStack, kLocation, kFunction, kBinary, kProcess, kThread };

// The columns of kProfileSql by name, in the order in which the parts above first mention them.
enum Column : size_t {
  kPartColumn,
  kProcessColumn,
  kTidColumn,
  kIdColumn,
  kCountColumn,
  kWeightColumn,
  kTextColumn,
  kIdsColumn,
  kBinaryColumn,
  kAddressColumn,
  kLinesColumn,
  kText2Column,
  kText3Column,
  kLineColumn,
};

model::FrameKind FrameKindOf(std::string_view name) {
  using enum model::FrameKind;
  for (const model::FrameKind kind : {kNative, kKernel, kJit, kPython, kGpu})
    if (model::EnumNames<model::FrameKind>::Name(kind) == name) return kind;
  return kUnknown;
}

// The index of `id` in `items`, where `make` puts it at its first use. -1 when the store has no such row.
template <class Item, class Row, class Make>
int32_t IndexOf(Id128 id, const std::unordered_map<Id128, Row>& rows,
                std::unordered_map<Id128, int32_t>& indices, std::vector<Item>& items, Make&& make) {
  if (const auto known = indices.find(id); known != indices.end()) return known->second;
  const auto row = rows.find(id);
  if (row == rows.end()) return -1;
  Item item = make(row->second);
  const auto index = static_cast<int32_t>(items.size());
  items.push_back(std::move(item));
  indices.emplace(id, index);
  return index;
}

}  // namespace

Result<ProfileAssembler> ProfileAssembler::Read(Store& store, const SqlPart& used) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query(fmt::format(kProfileSql, used.text), used.parameters));
  ProfileAssembler assembler;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    assembler.Take(*rows);
  }
  // The database gives rows in no particular order; the same profile is the same every time.
  std::ranges::sort(assembler.used_, {},
                    [](const Used& row) { return std::tuple(row.process, row.tid, row.stack, row.state); });
  return assembler;
}

void ProfileAssembler::Take(const Rows& row) {
  const auto text = [&](Column column) { return std::string(row.Text(column)); };
  const auto thread = [&] {
    return ThreadKey{row.Id(kProcessColumn), static_cast<int32_t>(row.Int64(kTidColumn))};
  };
  switch (static_cast<Part>(row.Int64(kPartColumn))) {
    case kSample: {
      const auto [process, tid] = thread();
      used_.push_back({process, tid, row.Id(kIdColumn), text(kTextColumn), row.Int64(kCountColumn),
                       row.Int64(kWeightColumn)});
      break;
    }
    case kStack: {
      const auto [at, is_new] = stacks_.try_emplace(row.Id(kIdColumn));
      if (is_new) at->second = row.IdList(kIdsColumn);
      break;
    }
    case kLocation:
      TakeLocation(row);
      break;
    case kFunction:
      TakeFunction(row);
      break;
    case kBinary: {
      const auto [at, is_new] = binaries_.try_emplace(row.Id(kIdColumn));
      if (is_new) at->second = {text(kTextColumn), text(kText2Column), text(kText3Column)};
      break;
    }
    case kProcess: {
      const auto [process, pid] = thread();
      processes_.try_emplace(process, Process{pid, text(kTextColumn)});
      break;
    }
    case kThread:
      thread_names_.try_emplace(thread(), text(kTextColumn));
      break;
  }
}

// Every file of some days holds it, and not all from after it was symbolised, or its lines were found.
void ProfileAssembler::TakeLocation(const Rows& row) {
  const auto [at, is_new] = locations_.try_emplace(row.Id(kIdColumn));
  Location& known = at->second;
  if (!is_new && known.has_lines) return;
  std::vector<int64_t> lines = row.Int64List(kLinesColumn);
  const bool has_lines = std::ranges::any_of(lines, [](int64_t line) { return line > 0; });
  const size_t functions = row.ListSize(kIdsColumn);
  if (!is_new && std::tuple(functions, has_lines) <= std::tuple(known.functions.size(), known.has_lines))
    return;
  known = {FrameKindOf(row.Text(kTextColumn)),
           row.Id(kBinaryColumn),
           row.Int64(kAddressColumn),
           row.IdList(kIdsColumn),
           std::move(lines),
           has_lines};
}

// As with locations.
void ProfileAssembler::TakeFunction(const Rows& row) {
  const auto [at, is_new] = functions_.try_emplace(row.Id(kIdColumn));
  if (!is_new && (!at->second.file.empty() || row.Text(kText3Column).empty())) return;
  at->second = {std::string(row.Text(kTextColumn)), std::string(row.Text(kText2Column)),
                std::string(row.Text(kText3Column)), static_cast<int32_t>(row.Int64(kLineColumn))};
}

int32_t ProfileAssembler::FunctionIndex(Id128 id) {
  return IndexOf(id, functions_, function_indices_, profile_.functions, [](const auto& row) { return row; });
}

int32_t ProfileAssembler::BinaryIndex(Id128 id) {
  return IndexOf(id, binaries_, binary_indices_, profile_.binaries, [](const auto& row) { return row; });
}

int32_t ProfileAssembler::LocationIndex(Id128 id) {
  return IndexOf(id, locations_, location_indices_, profile_.locations, [this](const Location& row) {
    model::Profile::Location location{row.kind, BinaryIndex(row.binary), row.address, {}};
    for (size_t i = 0; i < row.functions.size(); ++i)
      location.lines.push_back(
          {FunctionIndex(row.functions[i]), static_cast<int32_t>(i < row.lines.size() ? row.lines[i] : 0)});
    return location;
  });
}

int32_t ProfileAssembler::StackIndex(Id128 id) {
  return IndexOf(id, stacks_, stack_indices_, profile_.stacks, [this](const std::vector<Id128>& row) {
    std::vector<int32_t> stack;
    for (const Id128 location : row) stack.push_back(LocationIndex(location));
    return stack;
  });
}

int32_t ProfileAssembler::ThreadIndex(Id128 process_id, int32_t tid) {
  const ThreadKey key{process_id, tid};
  const auto [known, is_new] =
      thread_indices_.try_emplace(key, static_cast<int32_t>(profile_.threads.size()));
  if (is_new) {
    const Process& process = processes_[process_id];
    profile_.threads.push_back({process_id, process.pid, tid, process.name, thread_names_[key]});
  }
  return known->second;
}

}  // namespace gpusonde::store
