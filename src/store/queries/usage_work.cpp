// SPDX-License-Identifier: Apache-2.0
#include "store/queries/usage_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "store/queries/gpu_work.h"
#include "store/rollups/gpu_windows.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/saturated_sum.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {
namespace {

// Roll-ups have work by its start. Work may still run so much later (store/rollups/gpu_windows.h).
constexpr int64_t kLongestWorkNs = 600 * kNanosPerSecond;

// Which process alone used a device in each minute of roll-ups.
class SoleUsers {
 public:
  // Reads a piece of roll-ups; pieces come in the order of time.
  Status Read(Store& store, const TimeRange& range) {
    const SqlPart sql{
        "SELECT DISTINCT device, start_ns, process FROM kernel_windows WHERE start_ns >= ? AND "
        "start_ns < ? AND end_ns - start_ns = ?",
        {range.from_ns - kLongestWorkNs, range.to_ns, kMinuteOfWork.length_ns}};
    return ForEachRow(store, sql,
                      [&](const Rows& row) { by_device_[row.Id(0)][row.Int64(1)].push_back(row.Id(2)); });
  }

  // Null if there are several, or none.
  std::optional<Id128> Of(Id128 device, int64_t minute_ns) const {
    const auto minutes = by_device_.find(device);
    if (minutes == by_device_.end()) return std::nullopt;
    std::optional<Id128> sole;
    for (auto at = minutes->second.lower_bound(minute_ns - kLongestWorkNs);
         at != minutes->second.end() && at->first <= minute_ns; ++at)
      for (const Id128 process : at->second) {
        if (sole.has_value() && *sole != process) return std::nullopt;
        sole = process;
      }
    return sole;
  }

 private:
  std::map<Id128, std::map<int64_t, std::vector<Id128>>> by_device_;
};

// What roll-ups say of a minute of a device.
struct BusyMinute {
  model::DeviceAccount* account = nullptr;
  size_t holder = 0;
  TimeRange minute;
  int64_t busy_ns = 0;
};

// Adds the roll-ups of a range to the accounts. Returns the minutes, sorted, that don't tell of every device
// whose work it was: nothing of these is added.
Result<std::vector<TimeRange>> AddRollups(Store& store, const TimeRange& range, const GpuUsage& usage,
                                          HeldDevices& holders) {
  SoleUsers sole;
  TRY(sole.Read(store, range));
  const SqlPart sql{fmt::format("SELECT device, start_ns, end_ns, {} FROM device_windows WHERE "
                                "start_ns >= ? AND start_ns < ? AND end_ns - start_ns = ? "
                                "GROUP BY device, start_ns, end_ns ORDER BY start_ns",
                                SaturatedSum("busy_ns")),
                    {range.from_ns, range.to_ns, kMinuteOfBusy.length_ns}};
  std::vector<TimeRange> in_rows;
  std::vector<BusyMinute> minutes;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    const auto device = holders.find(row.Id(0));
    if (device == holders.end()) return;
    const TimeRange minute{row.Int64(1), row.Int64(2)};
    const std::optional<Id128> user = sole.Of(device->first, minute.from_ns);
    const HeldDevice& held = device->second;
    const auto holder =
        std::ranges::find_if(held.rows, [&](size_t i) { return usage.holders[i].process == user; });
    const auto place = static_cast<size_t>(holder - held.rows.begin());
    if (holder == held.rows.end() || !held.account->IsEven(minute) ||
        UnionOf(held.times[place].held, minute).empty())
      AppendToUnion(minute, in_rows);
    else
      minutes.push_back({&*device->second.account, place, minute, row.Int64(3)});
  }));
  for (const BusyMinute& busy : minutes) {
    const auto at = std::ranges::partition_point(
        in_rows, [&](const TimeRange& times) { return times.to_ns <= busy.minute.from_ns; });
    if (at == in_rows.end() || at->from_ns >= busy.minute.to_ns)
      busy.account->AddBusySum(busy.holder, busy.minute, busy.busy_ns);
  }
  return in_rows;
}

// Adds the work of a slice of time, which is small enough to be held in memory, row by row.
Status AddRows(Store& store, const TimeRange& slice, const GpuUsage& usage, HeldDevices& holders) {
  std::map<Id128, std::vector<std::vector<TimeRange>>> busy;  // device to times of each holder
  std::map<Id128, std::vector<std::pair<Id128, size_t>>>
      on;  // process to devices and its place among holders
  for (const auto& [device, of_device] : holders) {
    busy[device].resize(of_device.rows.size());
    for (size_t i = 0; i < of_device.rows.size(); ++i)
      if (!usage.holders[of_device.rows[i]].without_process.has_value() &&
          !UnionOf(of_device.times[i].held, slice).empty())
        on[usage.holders[of_device.rows[i]].process].emplace_back(device, i);
  }
  std::map<Id128, DeviceTimes> by_process;
  if (!on.empty()) {
    ASSIGN_OR_RETURN(by_process, ReadProcessTimes(store, {}, slice));
  }
  for (const auto& [process, places] : on) {
    DeviceTimes& times = by_process[process];
    // Work that ran while its process didn't hold the device, such as after its end, is nobody's.
    for (const auto& [device, place] : places)
      busy[device][place] = Intersect(times[device], holders.at(device).times[place].held);
  }
  for (auto& [device, of_device] : holders) of_device.account->AddBusy(busy[device]);
  return {};
}

}  // namespace

Status AddWork(Store& store, const GpuUsage& usage, HeldDevices& holders) {
  std::vector<TimeRange> observed;
  for (const auto& [device, of_device] : holders) {
    const std::vector<TimeRange> times = of_device.account->Observed();
    observed.insert(observed.end(), times.begin(), times.end());
  }
  std::ranges::sort(observed, {}, &TimeRange::from_ns);
  observed = UnionOf(std::move(observed));

  for (const TimePiece& piece : PiecesOf(usage.range, store.gpu_windows(), kUsageLevels)) {
    std::vector<TimeRange> in_rows{piece.range};
    if (piece.level.has_value()) {
      ASSIGN_OR_RETURN(in_rows, AddRollups(store, piece.range, usage, holders));
    }
    for (const TimeRange& range : in_rows) {
      if (UnionOf(observed, range).empty()) continue;
      ASSIGN_OR_RETURN(const std::vector<TimeRange> slices,
                       ReadSlices(Asking(store), {}, range, kWorkRowsAtOnce));
      for (const TimeRange& slice : slices) TRY(AddRows(store, slice, usage, holders));
    }
  }
  return {};
}

}  // namespace gpusonde::store
