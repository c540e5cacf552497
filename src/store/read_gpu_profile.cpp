// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/demangle.h"
#include "base/saturated.h"
#include "base/time.h"
#include "store/gpu_query.h"
#include "store/gpu_sql.h"
#include "store/profile_assembler.h"
#include "store/time_range.h"

namespace gpusonde::store {
namespace {

// Correlation ids are 32-bit and come again; a launch and its work are never this far apart.
constexpr int64_t kCorrelationReachNs = 60 * kNanosPerSecond;

// Joining 36 M rows with their launches took more than the 128 MB that a store has, 9 M did not.
constexpr int64_t kSliceRows = 4'000'000;

constexpr std::string_view kNotSampled = "[stack not sampled]";
constexpr std::string_view kCapturedInGraph = "[captured in graph]";
constexpr std::string_view kGraphLaunch = "[graph launch]";
constexpr std::string_view kThreadNotKnown = "[thread not known]";

// Rows of three kinds, told apart by `part`:
//   0  all work of a name whose stacks are estimated: `stack` is null
//   1  its sampled launches, by stack, thread and stream: `weight` is the sum of 1/p over launches, `time`
//   and
//      `variance` are those of model::LaunchSums. A launch is sampled whole, so all that it started is one d.
//   2  work of graph nodes whose capture was seen: exact
//
// The node of a graph that ran is a clone of one in the graph before, and so on back to the one that was
// captured or made, which has the stack. Sessions only grow: a node is looked for in its own and older ones.
constexpr std::string_view kGpuSql = R"(
  WITH RECURSIVE work AS NOT MATERIALIZED (SELECT * FROM {work}),
  calls AS (
    SELECT process, session, correlation, start_ns, tid, stack, probability FROM api_calls
    WHERE stack IS NOT NULL AND probability > 0 AND probability <= 1 AND start_ns >= ? AND start_ns < ?
  ), origins AS (
    SELECT process, session, node, original_node, stack, 0 AS steps FROM graph_nodes
    UNION ALL
    SELECT origins.process, origins.session, origins.node, nodes.original_node, nodes.stack, steps + 1
    FROM origins JOIN graph_nodes AS nodes
      ON nodes.process = origins.process AND nodes.node = origins.original_node AND nodes.session <= origins.session
    WHERE origins.stack IS NULL AND origins.original_node IS NOT NULL AND steps < 16
  ), captured AS (
    SELECT process, session, node, min(stack) AS stack FROM origins WHERE stack IS NOT NULL
    GROUP BY process, session, node
  ), graph_work AS (
    SELECT work.*, captured.stack FROM (SELECT * FROM work WHERE graph_node IS NOT NULL) AS work
    ASOF LEFT JOIN captured ON work.process = captured.process AND work.graph_node = captured.node
      AND work.session >= captured.session
  ), launched AS NOT MATERIALIZED (
    SELECT process, device, session, correlation, stream, start_ns, end_ns, name, false AS graph
    FROM work WHERE graph_node IS NULL
    UNION ALL
    SELECT process, device, session, correlation, stream, start_ns, end_ns, name, true AS graph
    FROM graph_work WHERE stack IS NULL
  ), launches AS (
    SELECT process, device, name, graph, stream, stack, tid, any_value(probability) AS p,
           sum(launched.end_ns - launched.start_ns)::DOUBLE AS duration
    FROM launched JOIN calls USING (process, session, correlation)
    WHERE abs(launched.start_ns - calls.start_ns) < {reach}
    GROUP BY process, device, name, graph, stream, stack, tid, session, correlation, calls.start_ns
  )
  SELECT 0 AS part, process, device, name, graph, sum(count)::BIGINT AS count,
         least(sum(duration_ns), 9223372036854775807)::BIGINT AS duration_ns, NULL::UUID AS stack, NULL::INTEGER AS tid,
         CASE WHEN min(stream) = max(stream) AND count(*) = count(stream) THEN min(stream) END AS stream,
         0::DOUBLE AS weight, 0::DOUBLE AS time, 0::DOUBLE AS variance
  FROM (
    SELECT process, device, name, graph, stream, count(*) AS count, sum(end_ns - start_ns) AS duration_ns
    FROM launched GROUP BY ALL
    UNION ALL
    SELECT process, device, name, false, NULL, sum(greatest(count, 0)), sum(greatest(duration_ns, 0))
    FROM {lost} GROUP BY ALL
  ) GROUP BY process, device, name, graph
  UNION ALL
  SELECT 1, process, device, name, graph, 0, 0, stack, tid, stream, sum(1 / p), sum(duration / p),
         sum((1 - p) / (p * p) * duration * duration)
  FROM launches GROUP BY process, device, name, graph, stack, tid, stream
  UNION ALL
  SELECT 2, process, device, name, true, count(*), least(sum(end_ns - start_ns), 9223372036854775807)::BIGINT, stack,
         NULL, stream, 0, 0, 0
  FROM graph_work WHERE stack IS NOT NULL GROUP BY process, device, name, stack, stream)";

enum Part : int64_t { kTotal, kSampled, kCaptured };
enum Column : size_t {
  kPartColumn,
  kProcessColumn,
  kDeviceColumn,
  kNameColumn,
  kGraphColumn,
  kCountColumn,
  kDurationColumn,
  kStackColumn,
  kTidColumn,
  kStreamColumn,
  kWeightColumn,
  kTimeColumn,
  kVarianceColumn,
};

// Work of a name by one process on one device; alone or of graphs.
struct GroupKey {
  Id128 process;
  Id128 device;
  std::string name;
  bool graph = false;
  auto operator<=>(const GroupKey&) const = default;
};
// Whose work it is, as far as it is known.
struct Launcher {
  Id128 stack;
  int32_t tid = 0;  // 0: not known
  std::optional<int64_t> stream;
  auto operator<=>(const Launcher&) const = default;
};
struct Sampled {
  double weight = 0;
  model::LaunchSums launches;
  int64_t count = 0;        // of captured work
  int64_t duration_ns = 0;  // likewise

  Sampled& operator+=(const Sampled& more) {
    weight += more.weight;
    launches += more.launches;
    count = AddSaturated(count, more.count);
    duration_ns = AddSaturated(duration_ns, more.duration_ns);
    return *this;
  }
};
struct Group {
  Sampled all;
  std::optional<int64_t> stream;  // when it is only one
  bool any = false;
  std::map<Launcher, Sampled> sampled;
  std::map<Launcher, Sampled> captured;

  void AddAll(const Sampled& more, std::optional<int64_t> of_stream) {
    if (!any) stream = of_stream;
    if (stream != of_stream) stream.reset();
    any = true;
    all += more;
  }
};
using Groups = std::map<GroupKey, Group>;

TimeRange Positive(const model::Selection& selection) {
  return {std::max<int64_t>(selection.from_ns, 0), selection.to_ns};
}

TimeRange CallsOf(const TimeRange& range) {
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() - kCorrelationReachNs;
  return {std::max<int64_t>(range.from_ns - kCorrelationReachNs, 0),
          std::min(range.to_ns, kLatest) + kCorrelationReachNs};
}

// Sums of records that were lost, as what follows FROM.
SqlPart LostWork(const model::Selection& selection, const TimeRange& range) {
  SqlPart lost{
      "(SELECT process, device, name, count, duration_ns FROM kernel_windows "
      "WHERE stack IS NULL AND start_ns >= ? AND start_ns < ?",
      {range.from_ns, range.to_ns}};
  if (selection.process.has_value()) lost += {" AND process = ?", {*selection.process}};
  if (selection.device.has_value()) lost += {" AND device = ?", {*selection.device}};
  if (selection.device.has_value() && selection.stream.has_value()) lost.text += " AND false";
  lost.text += ")";
  return lost;
}

// Adds what starts in the range.
Status AddGroups(Store& store, const model::Selection& selection, const TimeRange& range, Groups& groups) {
  const TimeRange calls = CallsOf(range);
  const SqlPart work = GpuWork(selection, range, WorkIn::kStartsIn);
  const SqlPart lost = LostWork(selection, range);
  // In the order of the question marks.
  std::vector<Parameter> parameters = work.parameters;
  parameters.insert(parameters.end(), {calls.from_ns, calls.to_ns});
  parameters.insert(parameters.end(), lost.parameters.begin(), lost.parameters.end());
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query(fmt::format(kGpuSql, fmt::arg("work", work.text), fmt::arg("lost", lost.text),
                                           fmt::arg("reach", kCorrelationReachNs)),
                               parameters));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return {};
    Group& group = groups[{rows->Id(kProcessColumn), rows->Id(kDeviceColumn),
                           std::string(rows->Text(kNameColumn)), rows->Int64(kGraphColumn) != 0}];
    const Launcher launcher{
        .stack = rows->Id(kStackColumn),
        .tid = static_cast<int32_t>(rows->Int64(kTidColumn)),
        .stream = rows->IsNull(kStreamColumn) ? std::nullopt : std::optional(rows->Int64(kStreamColumn))};
    const Sampled sampled{.weight = rows->Float64(kWeightColumn),
                          .launches = {rows->Float64(kTimeColumn), rows->Float64(kVarianceColumn)},
                          .count = rows->Int64(kCountColumn),
                          .duration_ns = rows->Int64(kDurationColumn)};
    switch (static_cast<Part>(rows->Int64(kPartColumn))) {
      case kTotal:
        group.AddAll(sampled, launcher.stream);
        break;
      case kSampled:
        group.sampled[launcher] += sampled;
        break;
      case kCaptured:
        group.captured[launcher] += sampled;
        break;
    }
  }
}

Result<Groups> ReadGroups(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const std::vector<TimeRange> slices,
                   ReadSlices(store, selection, Positive(selection), kSliceRows));
  Groups groups;
  for (const TimeRange& slice : slices) TRY(AddGroups(store, selection, slice, groups));
  return groups;
}

// What the assembler reads names for: every stack that the groups may have, and every process.
SqlPart UsedNames(const model::Selection& selection) {
  const TimeRange range = Positive(selection);
  const TimeRange calls = CallsOf(range);
  SqlPart used{
      "(SELECT process, tid, stack, 0 AS count, 0 AS weight_ns FROM api_calls "
      "WHERE stack IS NOT NULL AND start_ns >= ? AND start_ns < ? "
      "UNION ALL SELECT process, 0, stack, 0, 0 FROM raw.graph_nodes WHERE stack IS NOT NULL "
      "UNION ALL SELECT DISTINCT process, 0, NULL::UUID, 0, 0 FROM ",
      {calls.from_ns, calls.to_ns}};
  used += GpuWork(selection, range, WorkIn::kStartsIn);
  used.text += ")";
  return used;
}

// Turns groups into samples.
class Builder {
 public:
  Builder(ProfileAssembler assembler, const std::vector<GpuDevice>& devices)
      : assembler_(std::move(assembler)) {
    for (const GpuDevice& device : devices) {
      device_indices_.emplace(device.device, static_cast<int32_t>(profile().devices.size()));
      profile().devices.push_back({device.name, device.ordinal, device.simulated});
    }
  }

  model::Profile& profile() { return assembler_.profile(); }

  void Add(const GroupKey& key, const Group& group) {
    for (const auto& [launcher, captured] : group.captured)
      AddSample(key, launcher,
                {.stack = StackOf(key.name, launcher.stack, kCapturedInGraph),
                 .count = captured.count,
                 .weight_ns = captured.duration_ns});
    if (group.all.count == 0) return;
    if (group.sampled.empty()) {
      AddSample(key, {.stream = group.stream},
                {.stack = StackOf(key.name, std::nullopt, kNotSampled),
                 .count = group.all.count,
                 .weight_ns = group.all.duration_ns});
      return;
    }
    std::vector<double> times, weights;
    model::LaunchSums whole;
    for (const auto& [launcher, sampled] : group.sampled) {
      times.push_back(sampled.launches.time_ns);
      weights.push_back(sampled.weight);
      whole += sampled.launches;
    }
    const std::vector<int64_t> shares = model::Apportion(group.all.duration_ns, times);
    const std::vector<int64_t> counts = model::Apportion(group.all.count, weights);
    const auto index = static_cast<int32_t>(profile().launch_groups.size());
    profile().launch_groups.push_back({group.all.duration_ns, whole});
    size_t i = 0;
    for (const auto& [launcher, sampled] : group.sampled) {
      AddSample(key, launcher,
                {.stack = StackOf(key.name, launcher.stack, key.graph ? kGraphLaunch : ""),
                 .count = counts[i],
                 .weight_ns = shares[i],
                 .launch_group = index,
                 .launches = sampled.launches});
      ++i;
    }
  }

 private:
  void AddSample(const GroupKey& key, const Launcher& launcher, model::Profile::Sample sample) {
    sample.thread = assembler_.ThreadIndex(key.process, launcher.tid);
    if (launcher.tid == 0) profile().threads[static_cast<size_t>(sample.thread)].name = kThreadNotKnown;
    const auto device = device_indices_.find(key.device);
    sample.device = device == device_indices_.end() ? -1 : device->second;
    sample.stream = launcher.stream;
    sample.graph = key.graph;
    profile().samples.push_back(sample);
  }

  // A location of a name, of no file.
  int32_t Leaf(const std::string& name) {
    const auto [entry, is_new] = leaves_.try_emplace(name, static_cast<int32_t>(profile().locations.size()));
    if (is_new) {
      profile().locations.push_back(
          {.kind = name == kNotSampled ? model::FrameKind::kUnknown : model::FrameKind::kGpu,
           .lines = {{static_cast<int32_t>(profile().functions.size()), 0}}});
      profile().functions.push_back({.name = name.empty() ? "[kernel without a name]" : Demangle(name),
                                     .system_name = name,
                                     .file = ""});
    }
    return entry->second;
  }

  // `name` above `mark`, where there is one, above the stack of that id.
  int32_t StackOf(const std::string& name, std::optional<Id128> caller, std::string_view mark) {
    const int32_t below = caller.has_value() ? assembler_.StackIndex(*caller) : -1;
    const auto [entry, is_new] = stacks_.try_emplace({Leaf(name), below, std::string(mark)},
                                                     static_cast<int32_t>(profile().stacks.size()));
    if (!is_new) return entry->second;
    std::vector<int32_t> frames = {Leaf(name)};
    if (!mark.empty()) frames.push_back(Leaf(std::string(mark)));
    if (below >= 0)
      for (const int32_t location : profile().stacks[static_cast<size_t>(below)]) frames.push_back(location);
    else if (caller.has_value())
      frames.push_back(-1);  // the store lacks that stack
    entry->second = static_cast<int32_t>(profile().stacks.size());
    profile().stacks.push_back(std::move(frames));
    return entry->second;
  }

  ProfileAssembler assembler_;
  std::unordered_map<Id128, int32_t> device_indices_;
  std::unordered_map<std::string, int32_t> leaves_;
  std::map<std::tuple<int32_t, int32_t, std::string>, int32_t> stacks_;
};

bool Shows(const model::Profile& profile, const std::vector<int32_t>& stack, const std::string& lower_text) {
  return std::ranges::any_of(stack, [&](int32_t location) {
    const size_t lines = location < 0 ? 0 : profile.locations[static_cast<size_t>(location)].lines.size();
    for (size_t line = 0; line < std::max<size_t>(lines, 1); ++line)
      if (AsciiLower(model::FrameName(profile, location, line)).find(lower_text) != std::string::npos)
        return true;
    return false;
  });
}

// What only the samples' stacks and threads tell.
void Select(model::Profile& profile, const model::Selection& selection) {
  if (selection.process.has_value() && selection.tid.has_value())
    std::erase_if(profile.samples, [&](const model::Profile::Sample& sample) {
      return profile.threads[static_cast<size_t>(sample.thread)].tid != *selection.tid;
    });
  if (selection.filter.empty()) return;
  const std::string text = AsciiLower(selection.filter);
  std::vector<bool> shown;
  for (const std::vector<int32_t>& stack : profile.stacks) shown.push_back(Shows(profile, stack, text));
  std::erase_if(profile.samples, [&](const model::Profile::Sample& sample) {
    return !shown[static_cast<size_t>(sample.stack)];
  });
}

}  // namespace

Result<model::Profile> ReadGpuProfile(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const Groups groups, ReadGroups(store, selection));
  ASSIGN_OR_RETURN(ProfileAssembler assembler, ProfileAssembler::Read(store, UsedNames(selection)));
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, ReadDevices(store));
  Builder builder(std::move(assembler), devices);
  for (const auto& [key, group] : groups) builder.Add(key, group);
  model::Profile& profile = builder.profile();
  profile.type = model::ProfileType::kGpu;
  Select(profile, selection);
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  profile.start_ns = range.from_ns;
  profile.end_ns = range.to_ns;
  return std::move(profile);
}

}  // namespace gpusonde::store
