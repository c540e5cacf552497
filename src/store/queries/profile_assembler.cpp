// SPDX-License-Identifier: Apache-2.0
#include "store/queries/profile_assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/saturated.h"
#include "store/sql/saturated_sum.h"

namespace gpusonde::store {
namespace {

model::FrameKind FrameKindOf(std::string_view name) {
  using enum model::FrameKind;
  for (const model::FrameKind kind : {kNative, kKernel, kJit, kPython, kGpu})
    if (model::EnumNames<model::FrameKind>::Name(kind) == name) return kind;
  return kUnknown;
}

// Finds those of `ids` in the store that aren't kept from earlier questions, by the rows of `sql`, which has
// a list of them as its parameter and gives the id as the first column. `take(row, known)` gives the row, or
// null when the one that is known (null: none) says as much: every file of some days may hold a row, and not
// all from after it was symbolised, or its lines were found.
template <class Row, class Take>
Status ReadRows(Store& store, KeptRows<Row>& kept, std::vector<Id128> ids, std::string_view sql, Take&& take,
                typename KeptRows<Row>::Found& found) {
  const RowVersion version = kept.Find(ids, found);
  if (ids.empty()) return {};
  const Parameter parameters[] = {std::move(ids)};
  typename KeptRows<Row>::Found read;
  TRY(ForEachRow(store.Query(std::string(sql), parameters), [&](const Rows& row) {
    std::shared_ptr<const Row>& known = read[row.Id(0)];
    if (std::shared_ptr<const Row> better = take(row, known.get()); better != nullptr)
      known = std::move(better);
  }));
  kept.Keep(read, version);
  found.merge(read);
  return {};
}

std::shared_ptr<const std::vector<Id128>> TakeStack(const Rows& row, const std::vector<Id128>* known) {
  return known != nullptr ? nullptr : std::make_shared<const std::vector<Id128>>(row.IdList(1));
}

std::shared_ptr<const LocationRow> TakeLocation(const Rows& row, const LocationRow* known) {
  if (known != nullptr && known->has_lines) return nullptr;
  std::vector<int64_t> lines = row.Int64List(5);
  const bool has_lines = std::ranges::any_of(lines, [](int64_t line) { return line > 0; });
  if (known != nullptr &&
      std::tuple(row.ListSize(4), has_lines) <= std::tuple(known->functions.size(), known->has_lines))
    return nullptr;
  return std::make_shared<const LocationRow>(LocationRow{FrameKindOf(row.Text(1)), row.Id(2), row.Int64(3),
                                                         row.IdList(4), std::move(lines), has_lines});
}

std::shared_ptr<const model::Profile::Function> TakeFunction(const Rows& row,
                                                             const model::Profile::Function* known) {
  if (known != nullptr && (!known->file.empty() || row.Text(3).empty())) return nullptr;
  return std::make_shared<const model::Profile::Function>(
      model::Profile::Function{std::string(row.Text(1)), std::string(row.Text(2)), std::string(row.Text(3)),
                               static_cast<int32_t>(row.Int64(4))});
}

std::shared_ptr<const model::Profile::Binary> TakeBinary(const Rows& row,
                                                         const model::Profile::Binary* known) {
  if (known != nullptr) return nullptr;
  return std::make_shared<const model::Profile::Binary>(
      model::Profile::Binary{std::string(row.Text(1)), std::string(row.Text(2)), std::string(row.Text(3))});
}

// Each once; without the id of nothing.
std::vector<Id128> Distinct(std::vector<Id128> ids) {
  std::erase(ids, Id128{});
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

// The index of `id` in `items`, where `make` puts it at its first use. -1 when the store has no such row.
template <class Item, class Row, class Make>
int32_t IndexOf(Id128 id, const std::unordered_map<Id128, std::shared_ptr<const Row>>& rows,
                std::unordered_map<Id128, int32_t>& indices, std::vector<Item>& items, Make&& make) {
  if (const auto known = indices.find(id); known != indices.end()) return known->second;
  const auto row = rows.find(id);
  if (row == rows.end()) return -1;
  Item item = make(*row->second);
  const auto index = static_cast<int32_t>(items.size());
  items.push_back(std::move(item));
  indices.emplace(id, index);
  return index;
}

}  // namespace

Result<ProfileAssembler> ProfileAssembler::Read(Store& store, std::span<const SqlPart> used) {
  std::vector<Used> read;
  for (const SqlPart& part : used) {
    const SqlPart sql{
        fmt::format("SELECT process, tid, stack, state, {}, {}, sum(variance_ns2) FROM {} GROUP BY ALL",
                    SaturatedSum("count"), SaturatedSum("weight_ns"), part.text),
        part.parameters};
    TRY(ForEachRow(store, sql, [&](const Rows& row) {
      read.push_back({row.Id(0), static_cast<int32_t>(row.Int64(1)), row.Id(2), std::string(row.Text(3)),
                      row.Int64(4), row.Int64(5), row.Float64(6)});
    }));
  }
  return Read(store, std::move(read));
}

Result<ProfileAssembler> ProfileAssembler::Read(Store& store, std::vector<Used> used) {
  ProfileAssembler assembler;
  assembler.used_ = std::move(used);
  assembler.SumUsed();
  TRY(assembler.ReadThreads(store));
  TRY(assembler.ReadNames(store));
  return assembler;
}

void ProfileAssembler::SumUsed() {
  const auto key = [](const Used& row) { return std::tie(row.process, row.tid, row.stack, row.state); };
  // The database gives rows in no particular order; the same profile is the same every time.
  std::ranges::sort(used_, {}, key);
  size_t kept = 0;
  for (size_t i = 1; i < used_.size(); ++i) {
    if (key(used_[i]) != key(used_[kept])) {
      if (++kept != i) used_[kept] = std::move(used_[i]);
      continue;
    }
    used_[kept].count = AddSaturated(used_[kept].count, used_[i].count);
    used_[kept].weight_ns = AddSaturated(used_[kept].weight_ns, used_[i].weight_ns);
    used_[kept].variance_ns2 += used_[i].variance_ns2;
  }
  if (!used_.empty()) used_.resize(kept + 1);
}

Status ProfileAssembler::ReadThreads(Store& store) {
  std::vector<Id128> ids;
  for (const Used& row : used_) ids.push_back(row.process);
  const std::vector<Parameter> processes = {Distinct(std::move(ids))};
  const SqlPart of_processes{
      "SELECT process, pid, name, command, parent_pid FROM processes WHERE process IN (SELECT "
      "unnest(?::UUID[]))",
      processes};
  TRY(ForEachRow(store, of_processes, [&](const Rows& row) {
    processes_.try_emplace(row.Id(0), Process{static_cast<int32_t>(row.Int64(1)), std::string(row.Text(2)),
                                              std::string(row.Text(3)), static_cast<int32_t>(row.Int64(4))});
  }));
  const SqlPart of_threads{
      "SELECT process, tid, name FROM threads WHERE process IN (SELECT unnest(?::UUID[]))", processes};
  return ForEachRow(store, of_threads, [&](const Rows& row) {
    thread_names_.try_emplace({row.Id(0), static_cast<int32_t>(row.Int64(1))}, std::string(row.Text(2)));
  });
}

Status ProfileAssembler::ReadNames(Store& store) {
  NameCache& names = store.names();
  std::vector<Id128> ids;
  for (const Used& row : used_) ids.push_back(row.stack);
  TRY(ReadRows(store, names.stacks, Distinct(std::move(ids)),
               "SELECT stack, locations FROM raw.stacks WHERE stack IN (SELECT unnest(?::UUID[]))", TakeStack,
               stacks_));
  ids = {};
  for (const auto& [id, locations] : stacks_) ids.insert(ids.end(), locations->begin(), locations->end());
  TRY(ReadRows(store, names.locations, Distinct(std::move(ids)),
               "SELECT location, kind, binary_id, address, functions, lines FROM raw.locations "
               "WHERE location IN (SELECT unnest(?::UUID[]))",
               TakeLocation, locations_));
  ids = {};
  std::vector<Id128> binaries;
  for (const auto& [id, location] : locations_) {
    ids.insert(ids.end(), location->functions.begin(), location->functions.end());
    binaries.push_back(location->binary);
  }
  TRY(ReadRows(store, names.functions, Distinct(std::move(ids)),
               "SELECT function, name, system_name, file, line FROM raw.functions "
               "WHERE function IN (SELECT unnest(?::UUID[]))",
               TakeFunction, functions_));
  return ReadRows(store, names.binaries, Distinct(std::move(binaries)),
                  "SELECT binary_id, name, path, build_id FROM raw.binaries "
                  "WHERE binary_id IN (SELECT unnest(?::UUID[]))",
                  TakeBinary, binaries_);
}

int32_t ProfileAssembler::FunctionIndex(Id128 id) {
  return IndexOf(id, functions_, function_indices_, profile_.functions, [](const auto& row) { return row; });
}

int32_t ProfileAssembler::BinaryIndex(Id128 id) {
  return IndexOf(id, binaries_, binary_indices_, profile_.binaries, [](const auto& row) { return row; });
}

int32_t ProfileAssembler::LocationIndex(Id128 id) {
  return IndexOf(id, locations_, location_indices_, profile_.locations, [this](const LocationRow& row) {
    model::Profile::Location location{row.kind, BinaryIndex(row.binary), row.address, {}};
    for (size_t i = 0; i < row.functions.size(); ++i)
      if (const int32_t function = FunctionIndex(row.functions[i]); function >= 0)
        location.lines.push_back({function, static_cast<int32_t>(i < row.lines.size() ? row.lines[i] : 0)});
    return location;
  });
}

int32_t ProfileAssembler::StackIndex(Id128 id) {
  const int32_t known =
      IndexOf(id, stacks_, stack_indices_, profile_.stacks, [this](const std::vector<Id128>& row) {
        std::vector<int32_t> stack;
        for (const Id128 location : row) stack.push_back(LocationIndex(location));
        return stack;
      });
  if (known >= 0) return known;
  if (missing_stack_ < 0) {
    missing_stack_ = static_cast<int32_t>(profile_.stacks.size());
    profile_.stacks.push_back({-1});
  }
  return missing_stack_;
}

int32_t ProfileAssembler::ThreadIndex(Id128 process_id, int32_t tid) {
  const ThreadKey key{process_id, tid};
  const auto [known, is_new] =
      thread_indices_.try_emplace(key, static_cast<int32_t>(profile_.threads.size()));
  if (is_new) {
    const Process& process = processes_[process_id];
    profile_.threads.push_back({process_id, process.pid, tid, process.name, thread_names_[key],
                                process.command, process.parent_pid});
  }
  return known->second;
}

}  // namespace gpusonde::store
