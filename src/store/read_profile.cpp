// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/enums.h"
#include "store/profile_query.h"
#include "store/selection_sql.h"
#include "store/time_range.h"

namespace gpusonde::store {
namespace {

// Everything in one statement, so that the samples are scanned once and every part sees the same state of the
// store. Its rows are of several kinds, told apart by `part`.
constexpr std::string_view kProfileSql = R"(
  WITH used AS MATERIALIZED (
    SELECT process, tid, stack, sum(count)::BIGINT AS count, sum(weight_ns)::BIGINT AS weight_ns
    FROM {} GROUP BY ALL
  ), used_stacks AS MATERIALIZED (
    SELECT stack, any_value(locations) AS locations FROM raw.stacks
    WHERE stack IN (SELECT stack FROM used) GROUP BY stack
  ), used_locations AS MATERIALIZED (
    SELECT * FROM raw.locations WHERE location IN (SELECT unnest(locations) FROM used_stacks)
  )
  SELECT 0 AS part, process, tid, stack AS id, count, weight_ns FROM used
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
  kIdsColumn,
  kTextColumn,
  kBinaryColumn,
  kAddressColumn,
  kLinesColumn,
  kText2Column,
  kText3Column,
  kLineColumn,
};

struct ThreadKey {
  Id128 process;
  int32_t tid = 0;
  bool operator==(const ThreadKey&) const = default;
};
struct ThreadKeyHash {
  size_t operator()(const ThreadKey& key) const {
    return std::hash<Id128>()(key.process) ^ static_cast<size_t>(key.tid) * 0x9E3779B97F4A7C15;
  }
};

model::FrameKind FrameKindOf(std::string_view name) {
  using enum model::FrameKind;
  for (const model::FrameKind kind : {kNative, kKernel, kJit, kPython, kGpu})
    if (model::EnumNames<model::FrameKind>::Name(kind) == name) return kind;
  return kUnknown;
}

// Gathers the rows of all parts, in whatever order they come, and then puts indices for ids.
class Assembler {
 public:
  void Take(const Rows& row) {
    const auto part = static_cast<Part>(row.Int64(kPartColumn));
    const Id128 id = row.Id(kIdColumn);
    const auto text = [&](Column column) { return std::string(row.Text(column)); };
    const ThreadKey thread{row.Id(kProcessColumn), static_cast<int32_t>(row.Int64(kTidColumn))};
    switch (part) {
      case kSample:
        samples_.push_back({thread, id, row.Int64(kCountColumn), row.Int64(kWeightColumn)});
        break;
      case kStack:
        stacks_.emplace(id, row.IdList(kIdsColumn));
        break;
      case kLocation:
        TakeLocation(row, id);
        break;
      case kFunction:
        functions_.emplace(id,
                           model::Profile::Function{text(kTextColumn), text(kText2Column), text(kText3Column),
                                                    static_cast<int32_t>(row.Int64(kLineColumn))});
        break;
      case kBinary:
        binaries_.emplace(id,
                          model::Profile::Binary{text(kTextColumn), text(kText2Column), text(kText3Column)});
        break;
      case kProcess:
        processes_.emplace(thread.process, Process{thread.tid, text(kTextColumn)});
        break;
      case kThread:
        thread_names_.emplace(thread, text(kTextColumn));
        break;
    }
  }

  model::Profile Assemble() {
    // The database gives rows in no particular order; the same profile is the same every time.
    std::ranges::sort(samples_, {}, [](const Sample& sample) {
      return std::tuple(sample.thread.process, sample.thread.tid, sample.stack);
    });
    for (const Sample& sample : samples_)
      profile_.samples.push_back(
          {StackIndex(sample.stack), ThreadIndex(sample.thread), sample.count, sample.weight_ns});
    return std::move(profile_);
  }

 private:
  struct Sample {
    ThreadKey thread;
    Id128 stack;
    int64_t count = 0;
    int64_t weight_ns = 0;
  };
  struct Location {
    model::FrameKind kind{};
    Id128 binary;
    int64_t address = 0;
    std::vector<Id128> functions;
    std::vector<int64_t> lines;
  };
  struct Process {
    int32_t pid = 0;
    std::string name;
  };
  using Indices = std::unordered_map<Id128, int32_t>;

  void TakeLocation(const Rows& row, Id128 id) {
    Location location{FrameKindOf(row.Text(kTextColumn)), row.Id(kBinaryColumn), row.Int64(kAddressColumn),
                      row.IdList(kIdsColumn), row.Int64List(kLinesColumn)};
    // Several files may hold it, and not all from after it was symbolised.
    const auto [at, is_new] = locations_.try_emplace(id, std::move(location));
    if (!is_new && at->second.functions.empty()) at->second = std::move(location);
  }

  // The index of `id` in `items`, where `make` puts it at its first use. -1 when the store has no such row.
  template <class Item, class Row, class Make>
  static int32_t IndexOf(Id128 id, const std::unordered_map<Id128, Row>& rows, Indices& indices,
                         std::vector<Item>& items, Make&& make) {
    if (const auto known = indices.find(id); known != indices.end()) return known->second;
    const auto row = rows.find(id);
    if (row == rows.end()) return -1;
    Item item = make(row->second);
    const auto index = static_cast<int32_t>(items.size());
    items.push_back(std::move(item));
    indices.emplace(id, index);
    return index;
  }

  int32_t FunctionIndex(Id128 id) {
    return IndexOf(id, functions_, function_indices_, profile_.functions,
                   [](const auto& row) { return row; });
  }
  int32_t BinaryIndex(Id128 id) {
    return IndexOf(id, binaries_, binary_indices_, profile_.binaries, [](const auto& row) { return row; });
  }
  int32_t LocationIndex(Id128 id) {
    return IndexOf(id, locations_, location_indices_, profile_.locations, [this](const Location& row) {
      model::Profile::Location location{row.kind, BinaryIndex(row.binary), row.address, {}};
      for (size_t i = 0; i < row.functions.size(); ++i)
        location.lines.push_back(
            {FunctionIndex(row.functions[i]), static_cast<int32_t>(i < row.lines.size() ? row.lines[i] : 0)});
      return location;
    });
  }
  int32_t StackIndex(Id128 id) {
    return IndexOf(id, stacks_, stack_indices_, profile_.stacks, [this](const std::vector<Id128>& row) {
      std::vector<int32_t> stack;
      for (const Id128 location : row) stack.push_back(LocationIndex(location));
      return stack;
    });
  }
  int32_t ThreadIndex(const ThreadKey& key) {
    const auto [known, is_new] =
        thread_indices_.try_emplace(key, static_cast<int32_t>(profile_.threads.size()));
    if (is_new) {
      const Process& process = processes_[key.process];
      profile_.threads.push_back({key.process, process.pid, key.tid, process.name, thread_names_[key]});
    }
    return known->second;
  }

  std::vector<Sample> samples_;
  std::unordered_map<Id128, std::vector<Id128>> stacks_;
  std::unordered_map<Id128, Location> locations_;
  std::unordered_map<Id128, model::Profile::Function> functions_;
  std::unordered_map<Id128, model::Profile::Binary> binaries_;
  std::unordered_map<Id128, Process> processes_;
  std::unordered_map<ThreadKey, std::string, ThreadKeyHash> thread_names_;

  model::Profile profile_;
  Indices stack_indices_, location_indices_, function_indices_, binary_indices_;
  std::unordered_map<ThreadKey, int32_t, ThreadKeyHash> thread_indices_;
};

// The frequency of all sources that sampled; 0 when they differ.
Result<double> SamplingHz(Store& store) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query("SELECT CASE WHEN min(sampling_hz) = max(sampling_hz) THEN min(sampling_hz) ELSE 0 END "
                  "FROM sources"));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any ? rows->Float64(0) : 0;
}

}  // namespace

Result<model::Profile> ReadProfile(Store& store, const model::Selection& selection) {
  const SqlPart time = CpuTimeIn(store, selection, Detail::kStacks);
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query(fmt::format(kProfileSql, time.text), time.parameters));
  Assembler assembler;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    assembler.Take(*rows);
  }
  model::Profile profile = assembler.Assemble();
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  profile.start_ns = range.from_ns;
  profile.end_ns = range.to_ns;
  ASSIGN_OR_RETURN(profile.sampling_hz, SamplingHz(store));
  return profile;
}

}  // namespace gpusonde::store
