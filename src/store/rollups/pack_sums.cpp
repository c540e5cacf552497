// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/pack_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/saturated.h"
#include "model/sketch.h"
#include "store/duckdb/schema.h"
#include "store/rollups/packs.h"
#include "store/rollups/work_sums.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/process_sql.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

// Kernels per slice: packs and launches of one slice are in memory, with the database's copy 24 MB where one
// launch in 40 has a stack and 90 MB where all have.
constexpr int64_t kSliceKernels = 500'000;

// A launch with a sampled stack.
struct Launch {
  Id128 process;
  int64_t session = 0;
  int64_t correlation = 0;
  int64_t start_ns = 0;
  int32_t tid = 0;
  Id128 stack;
  double probability = 1;
};

class Launches {
 public:
  static Result<Launches> Read(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                               const std::string& tables) {
    const TimeRange reach = LaunchReach(range);
    SqlPart sql{fmt::format("SELECT process, session, correlation, start_ns, tid, stack, probability FROM "
                            "{}api_calls WHERE stack IS NOT NULL AND probability > 0 AND probability <= 1 "
                            "AND start_ns >= ? AND start_ns < ?",
                            tables),
                {reach.from_ns, reach.to_ns}};
    sql += AndOfProcesses(selection);
    ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, ask(sql));
    Launches launches;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, rows->Next());
      if (!more) break;
      launches.all_.push_back({rows->Id(0), rows->Int64(1), rows->Int64(2), rows->Int64(3),
                               static_cast<int32_t>(rows->Int64(4)), rows->Id(5), rows->Float64(6)});
    }
    for (size_t i = 0; i < launches.all_.size(); ++i) {
      launches.by_correlation_.emplace(launches.all_[i].correlation, i);
      launches.maybe_[SlotOf(launches.all_[i].correlation)] = true;
    }
    return launches;
  }

  const Launch& operator[](size_t index) const { return all_[index]; }

  // Calls visit(index) for each that may have started the kernel. Of 40 kernels one has one.
  template <class Visit>
  void ForEachOf(const Id128& process, int64_t session, int64_t correlation, int64_t start_ns,
                 Visit&& visit) const {
    if (!maybe_[SlotOf(correlation)]) return;
    const auto [first, last] = by_correlation_.equal_range(correlation);
    for (auto found = first; found != last; ++found) {
      const Launch& launch = all_[found->second];
      if (launch.process == process && launch.session == session && MayHaveStarted(launch.start_ns, start_ns))
        visit(found->second);
    }
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 20;
  static size_t SlotOf(int64_t correlation) { return static_cast<uint64_t>(correlation) % kSlots; }

  std::vector<Launch> all_;
  std::unordered_multimap<int64_t, size_t> by_correlation_;
  std::vector<bool> maybe_ = std::vector<bool>(kSlots);
};

struct WorkKey {
  Id128 process;
  Id128 device;
  std::string name;
  int64_t stream = 0;
  auto operator<=>(const WorkKey&) const = default;
};
struct Work {
  int64_t count = 0;
  int64_t duration_ns = 0;
  model::Sketch sketch;
};
// Sums slice by slice: only the launches of one are in memory.
class Summing {
 public:
  explicit Summing(PackSumOptions options) : options_(options) {}

  void BeginSlice(const TimeRange& slice, Launches launches) {
    slice_ = slice;
    launches_ = std::move(launches);
  }

  void Add(const Pack& pack) {
    const auto entry = work_.try_emplace({pack.process, pack.device, pack.name, pack.stream}).first;
    for (size_t i = 0; i < pack.size(); ++i) {
      const int64_t start_ns = pack.StartNs(i);
      if (start_ns < slice_.from_ns || start_ns >= slice_.to_ns) continue;
      const int64_t duration_ns = pack.DurationNs(i);
      ++entry->second.count;
      entry->second.duration_ns = AddSaturated(entry->second.duration_ns, duration_ns);
      if (options_.sketches) entry->second.sketch.Add(duration_ns);
      if (!options_.launches || i >= pack.correlations.size()) continue;
      launches_.ForEachOf(pack.process, pack.session, pack.correlations[i], start_ns, [&](size_t launch) {
        int64_t& together_ns = started_[{&entry->first, launch}];
        together_ns = AddSaturated(together_ns, duration_ns);
      });
    }
  }

  void EndSlice() {
    for (const auto& [what, duration_ns] : started_) {
      const Launch& launch = launches_[what.second];
      Sampled& sampled = sampled_[{*what.first, launch.stack, launch.tid}];
      const double p = launch.probability;
      const auto duration = static_cast<double>(duration_ns);
      sampled.weight += 1 / p;
      sampled.time_ns += duration / p;
      sampled.variance_ns2 += (1 - p) / (p * p) * duration * duration;
    }
    started_.clear();
  }

  std::vector<model::KernelWindow> Rows() const {
    std::vector<model::KernelWindow> rows;
    for (const auto& [key, work] : work_) {
      if (work.count == 0) continue;
      model::KernelWindow row = RowOf(key, model::WorkPart::kAll);
      row.count = work.count;
      row.duration_ns = work.duration_ns;
      work.sketch.ForEach([&row](uint32_t bucket, uint64_t count) {
        row.sketch.push_back(bucket);
        row.sketch.push_back(static_cast<int64_t>(count));
      });
      rows.push_back(std::move(row));
    }
    for (const auto& [key, sampled] : sampled_) {
      const auto& [work, stack, tid] = key;
      model::KernelWindow row = RowOf(work, model::WorkPart::kSampled);
      row.stack = stack;
      row.tid = tid;
      row.weight = sampled.weight;
      row.time_ns = sampled.time_ns;
      row.variance_ns2 = sampled.variance_ns2;
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  struct Sampled {
    double weight = 0;
    double time_ns = 0;
    double variance_ns2 = 0;
  };

  static model::KernelWindow RowOf(const WorkKey& key, model::WorkPart part) {
    return {.part = part,
            .process = key.process,
            .device = key.device,
            .name = key.name,
            .stream = key.stream,
            .stack = std::nullopt,
            .tid = std::nullopt,
            .sketch = {}};
  }

  PackSumOptions options_;
  TimeRange slice_;
  Launches launches_;
  std::map<WorkKey, Work> work_;
  // What one launch of the slice started of one kind of work, and how long it ran together.
  std::map<std::pair<const WorkKey*, size_t>, int64_t> started_;
  std::map<std::tuple<WorkKey, Id128, int32_t>, Sampled> sampled_;  // by stack and thread
};

// Packs that may contain kernels of the range, as what follows FROM: rows of start_ns and count.
SqlPart PackSpans(const model::Selection& selection, const TimeRange& range, const std::string& tables) {
  SqlPart spans{
      fmt::format("(SELECT start_ns, count FROM {}kernel_packs WHERE {} AND len(graph_nodes) = 0 AND ",
                  tables, duckdb::kSoundPack),
      {}};
  spans += PacksIn(selection, range, WorkIn::kStartsIn);
  spans.text += ")";
  return spans;
}

Result<bool> AnyPacks(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                      const std::string& tables) {
  SqlPart any{"SELECT 1 WHERE EXISTS ", {}};
  any += PackSpans(selection, range, tables);
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, ask(any));
  return rows->Next();
}

Status SumSlice(const Ask& ask, const model::Selection& selection, const TimeRange& slice,
                PackSumOptions options, const std::string& tables, Summing& sums) {
  Launches launches;
  if (options.launches) {
    ASSIGN_OR_RETURN(launches, Launches::Read(ask, selection, slice, tables));
  }
  sums.BeginSlice(slice, std::move(launches));
  const PackQuery query{
      .which = WorkIn::kStartsIn, .graphs = false, .correlations = options.launches, .tables = tables};
  TRY(ForEachPack(ask, selection, slice, query, [&sums](const Pack& pack) { sums.Add(pack); }));
  sums.EndSlice();
  return {};
}

}  // namespace

Result<std::vector<model::KernelWindow>> SumPacks(const Ask& ask, const model::Selection& selection,
                                                  const TimeRange& whole, PackSumOptions options,
                                                  const std::string& tables) {
  const TimeRange range{std::max<int64_t>(whole.from_ns, 0), whole.to_ns};
  Summing sums(options);
  // Without packs, the launches of kernels in rows would be read for nothing.
  ASSIGN_OR_RETURN(const bool any, AnyPacks(ask, selection, range, tables));
  if (!any) return sums.Rows();
  const auto counted = [&](const TimeRange& part) { return PackSpans(selection, part, tables); };
  ASSIGN_OR_RETURN(const std::vector<TimeRange> slices, ReadSlicesOf(ask, counted, range, kSliceKernels));
  for (const TimeRange& slice : slices) TRY(SumSlice(ask, selection, slice, options, tables, sums));
  return sums.Rows();
}

Status AddPackedTimes(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                      const std::string& tables, const TimesOf& times_of) {
  const PackQuery query{.which = WorkIn::kRunsIn, .tables = tables};
  return ForEachPack(ask, selection, range, query, [&](const Pack& pack) {
    std::vector<TimeRange>& times = *times_of(pack.process, pack.device);
    for (size_t i = 0; i < pack.size(); ++i) {
      const int64_t start_ns = pack.StartNs(i);
      const TimeRange time{std::max(start_ns, range.from_ns),
                           std::min(start_ns + pack.DurationNs(i), range.to_ns)};
      if (time.from_ns < time.to_ns) times.push_back(time);
    }
  });
}

}  // namespace gpusonde::store
