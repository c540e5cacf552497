// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/demangle.h"
#include "base/saturated.h"
#include "base/time.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_assembler.h"
#include "store/queries/selection_sql.h"
#include "store/rollups/gpu_windows.h"
#include "store/rollups/windows.h"
#include "store/rollups/work_sums.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

constexpr std::string_view kNotSampled = "[stack not sampled]";
constexpr std::string_view kCapturedInGraph = "[captured in graph]";
constexpr std::string_view kGraphLaunch = "[graph launch]";
constexpr std::string_view kThreadNotKnown = "[unknown thread]";

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
  Sampled lost;                   // of all, work whose records were lost
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

constexpr std::array kGpuProfileLevels = {kHourOfWork, kMinuteOfWork};

// What isn't one of the others is lost work.
model::WorkPart PartOf(std::string_view name) {
  using enum model::WorkPart;
  for (const model::WorkPart part : {kAll, kSampled, kCaptured})
    if (model::EnumNames<model::WorkPart>::Name(part) == name) return part;
  return kLost;
}

model::KernelWindow RowOf(const Rows& rows) {
  return {.part = PartOf(rows.Text(kPartColumn)),
          .process = rows.Id(kProcessColumn),
          .device = rows.Id(kDeviceColumn),
          .name = std::string(rows.Text(kNameColumn)),
          .graph = rows.Int64(kGraphColumn) != 0,
          .stream = rows.IsNull(kStreamColumn) ? std::nullopt : std::optional(rows.Int64(kStreamColumn)),
          .stack = rows.IsNull(kStackColumn) ? std::nullopt : std::optional(rows.Id(kStackColumn)),
          .tid = static_cast<int32_t>(rows.Int64(kTidColumn)),
          .count = rows.Int64(kCountColumn),
          .duration_ns = rows.Int64(kDurationColumn),
          .weight = rows.Float64(kWeightColumn),
          .time_ns = rows.Float64(kTimeColumn),
          .variance_ns2 = rows.Float64(kVarianceColumn),
          .sketch = {}};
}

void Add(const model::KernelWindow& row, Groups& groups) {
  Group& group = groups[{row.process, row.device, row.name, row.graph}];
  const Launcher launcher{
      .stack = row.stack.value_or(Id128{}), .tid = row.tid.value_or(0), .stream = row.stream};
  const Sampled sampled{.weight = row.weight,
                        .launches = {row.time_ns, row.variance_ns2},
                        .count = row.count,
                        .duration_ns = row.duration_ns};
  if (row.part == model::WorkPart::kSampled)
    group.sampled[launcher] += sampled;
  else if (row.part == model::WorkPart::kCaptured)
    group.captured[launcher] += sampled;
  else
    group.AddAll(sampled, launcher.stream);
  if (row.part == model::WorkPart::kLost) group.lost += sampled;
}

Status Add(Store& store, const SqlPart& sums, Groups& groups) {
  return ForEachRow(store, sums, [&](const Rows& row) { Add(RowOf(row), groups); });
}

Result<Groups> ReadGroups(Store& store, const model::Selection& selection) {
  Groups groups;
  const TimeRange range = Positive(selection);
  TRY(Add(store, SumsOfLost(selection, range), groups));
  for (const TimePiece& piece : PiecesOf(range, store.gpu_windows(), kGpuProfileLevels)) {
    if (piece.level.has_value()) {
      TRY(Add(store, SumsOfWindows(selection, piece.range, piece.level->length_ns), groups));
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<model::KernelWindow> sums,
                     SumWork(Asking(store), selection, piece.range));
    for (const model::KernelWindow& row : sums) Add(row, groups);
  }
  return groups;
}

// What the assembler reads names for.
std::vector<ProfileAssembler::Used> UsedNames(const Groups& groups) {
  std::vector<ProfileAssembler::Used> used;
  for (const auto& [key, group] : groups) {
    used.push_back({.process = key.process, .state = ""});
    for (const auto* launchers : {&group.sampled, &group.captured})
      for (const auto& [launcher, sampled] : *launchers)
        used.push_back({.process = key.process, .tid = launcher.tid, .stack = launcher.stack, .state = ""});
  }
  return used;
}

// The processes of traces. These have all launches of their time, each with a stack, but no others: what was
// launched before a trace began has none of them.
Result<std::set<Id128>> ReadProcessesOfTraces(Store& store) {
  std::set<Id128> processes;
  TRY(ForEachRow(
      store, {"SELECT process FROM processes JOIN sources USING (source) WHERE sources.kind = 'import'", {}},
      [&](const Rows& row) { processes.insert(row.Id(0)); }));
  return processes;
}

// Turns groups into samples.
class Builder {
 public:
  Builder(ProfileAssembler assembler, const std::vector<GpuDevice>& devices,
          std::set<Id128> processes_of_traces)
      : assembler_(std::move(assembler)), processes_of_traces_(std::move(processes_of_traces)) {
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
    Sampled launched = group.all;
    if (const Sampled unlaunched = UnlaunchedOf(key, group, whole, weights); unlaunched.duration_ns > 0) {
      AddSample(key, {.stream = group.stream},
                {.stack = StackOf(key.name, std::nullopt, kNotSampled),
                 .count = unlaunched.count,
                 .weight_ns = unlaunched.duration_ns});
      launched.duration_ns -= unlaunched.duration_ns;
      launched.count -= unlaunched.count;
    }
    const std::vector<int64_t> shares = model::Apportion(launched.duration_ns, times);
    const std::vector<int64_t> counts = model::Apportion(launched.count, weights);
    const auto index = static_cast<int32_t>(profile().launch_groups.size());
    profile().launch_groups.push_back({launched.duration_ns, whole});
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
  // What none of a trace's launches started. Launches are counted, not what they started: as if each started
  // one piece of work.
  Sampled UnlaunchedOf(const GroupKey& key, const Group& group, const model::LaunchSums& launched,
                       const std::vector<double>& launches) const {
    Sampled unlaunched;
    if (!processes_of_traces_.contains(key.process)) return unlaunched;
    const int64_t recorded_ns = group.all.duration_ns - group.lost.duration_ns;
    // In a damaged file sums may be anything.
    if (!(launched.time_ns >= 0 && launched.time_ns < static_cast<double>(recorded_ns))) return unlaunched;
    unlaunched.duration_ns = recorded_ns - std::llround(launched.time_ns);
    const int64_t most = group.all.count - group.lost.count;
    const double rest = static_cast<double>(most) - std::accumulate(launches.begin(), launches.end(), 0.0);
    if (rest > 0 && rest < static_cast<double>(most)) unlaunched.count = std::llround(rest);
    return unlaunched;
  }

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
    entry->second = static_cast<int32_t>(profile().stacks.size());
    profile().stacks.push_back(std::move(frames));
    return entry->second;
  }

  ProfileAssembler assembler_;
  std::set<Id128> processes_of_traces_;
  std::unordered_map<Id128, int32_t> device_indices_;
  std::unordered_map<std::string, int32_t> leaves_;
  std::map<std::tuple<int32_t, int32_t, std::string>, int32_t> stacks_;
};

bool Shows(const model::Profile& profile, const std::vector<int32_t>& stack, const std::string& lower_text) {
  return std::ranges::any_of(stack, [&](int32_t location) {
    const size_t lines = location < 0 ? 0 : profile.locations[static_cast<size_t>(location)].lines.size();
    for (size_t line = 0; line < std::max<size_t>(lines, 1); ++line)
      if (ToLower(model::FrameName(profile, location, line)).find(lower_text) != std::string::npos)
        return true;
    return false;
  });
}

// The selection's conditions on threads and names, which only sampled stacks have.
void Select(model::Profile& profile, const model::Selection& selection) {
  if (selection.processes.size() == 1 && selection.tid.has_value())
    std::erase_if(profile.samples, [&](const model::Profile::Sample& sample) {
      return profile.threads[static_cast<size_t>(sample.thread)].tid != *selection.tid;
    });
  if (selection.filter.empty()) return;
  const std::string text = ToLower(selection.filter);
  std::vector<bool> shown;
  for (const std::vector<int32_t>& stack : profile.stacks) shown.push_back(Shows(profile, stack, text));
  std::erase_if(profile.samples, [&](const model::Profile::Sample& sample) {
    return !shown[static_cast<size_t>(sample.stack)];
  });
}

}  // namespace

Result<model::Profile> ReadGpuProfile(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const Groups groups, ReadGroups(store, selection));
  ASSIGN_OR_RETURN(ProfileAssembler assembler, ProfileAssembler::Read(store, UsedNames(groups)));
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, ReadDevices(store));
  ASSIGN_OR_RETURN(std::set<Id128> processes_of_traces, ReadProcessesOfTraces(store));
  Builder builder(std::move(assembler), devices, std::move(processes_of_traces));
  for (const auto& [key, group] : groups) builder.Add(key, group);
  model::Profile& profile = builder.profile();
  profile.type = model::ProfileType::kGpu;
  Select(profile, selection);
  model::BoundSums(profile);
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  profile.start_ns = range.from_ns;
  profile.end_ns = range.to_ns;
  return std::move(profile);
}

}  // namespace gpusonde::store
