// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "store/queries/gpu_work.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/saturated_sum.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"
#include "store/tracks/read_parts.h"
#include "store/tracks/tracks.h"

namespace gpusonde::store {
namespace {

Result<int64_t> CountRows(Store& store, const SqlPart& rows) {
  SqlPart sql{fmt::format("SELECT {} FROM ", SaturatedSum("count")), {}};
  sql += rows;
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> counts, store.Query(sql.text, sql.parameters));
  ASSIGN_OR_RETURN(const bool any, counts->Next());
  return any ? counts->Int64(0) : 0;
}

Status CheckEvents(Store& store, const model::Selection& selection, const TimeRange& range) {
  ASSIGN_OR_RETURN(const int64_t work, CountRows(store, GpuWorkSpans(selection, range, WorkIn::kStartsIn)));
  ASSIGN_OR_RETURN(const int64_t of_threads, CountRows(store, CountedThreadRows(selection, range)));
  if (work > kMaxTrackEvents || of_threads > kMaxTrackEvents)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("this time holds {:.0f} million events; a timeline shows at most {} million: select a "
                    "shorter time or a process",
                    static_cast<double>(work) / 1e6 + static_cast<double>(of_threads) / 1e6,
                    kMaxTrackEvents / 1'000'000));
  return {};
}

// Streams of a GPU follow each other, in the order of GPUs.
Status AddDevices(Store& store, Tracks& tracks) {
  std::set<Id128> seen;
  for (const Track& track : tracks.tracks)
    if (track.device.has_value()) seen.insert(*track.device);
  for (const DeviceUser& user : tracks.users) seen.insert(user.device);
  ASSIGN_OR_RETURN(std::vector<GpuDevice> devices, ReadDevicesAnd(store, {seen.begin(), seen.end()}));
  std::erase_if(devices, [&](const GpuDevice& device) { return !seen.contains(device.device); });
  std::map<Id128, size_t> places;
  for (const GpuDevice& device : devices) places.emplace(device.device, places.size());
  std::ranges::stable_sort(tracks.tracks, {}, [&](const Track& track) {
    return track.device.has_value() ? places[*track.device] : places.size();
  });
  tracks.devices = std::move(devices);
  return {};
}

// Who uses devices, and when each was profiled. Without sessions all work is known.
Status AddUsers(Store& store, const model::Selection& selection, Tracks& tracks) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> sessions,
                   store.Query("SELECT 1 FROM raw.gpu_sessions WHERE start_ns > 0 LIMIT 1"));
  ASSIGN_OR_RETURN(const bool any, sessions->Next());
  if (!any) return {};
  const TimeRange& range = tracks.grid.range;
  model::Selection any_stream = selection;
  any_stream.stream.reset();
  SqlPart owners{"SELECT DISTINCT device, process FROM (", {}};
  owners += WorkOwners(store, any_stream, SessionReach(range));
  owners.text += ") ORDER BY device, process";
  TRY(ForEachRow(store, owners, [&](const Rows& row) {
    tracks.users.push_back({.process = row.Id(1), .device = row.Id(0), .observed = {}});
  }));
  ASSIGN_OR_RETURN(const auto observed, ReadObservedTimesByProcess(store, selection, range));
  for (DeviceUser& user : tracks.users)
    if (const auto times = observed.find(user.process); times != observed.end())
      user.observed = times->second;
  return {};
}

// Names of processes and their threads.
Status AddOwners(Store& store, Tracks& tracks) {
  std::set<Id128> seen;
  for (const Track& track : tracks.tracks) seen.insert(track.process);
  for (const DeviceUser& user : tracks.users) seen.insert(user.process);
  const std::vector<Parameter> of_these = {std::vector<Id128>(seen.begin(), seen.end())};
  const SqlPart processes{
      "SELECT process, pid, name, command FROM processes WHERE process IN (SELECT unnest(?::UUID[])) ORDER "
      "BY "
      "pid, process",
      of_these};
  TRY(ForEachRow(store, processes, [&](const Rows& row) {
    tracks.processes.push_back({.process = row.Id(0),
                                .pid = static_cast<int32_t>(row.Int64(1)),
                                .name = std::string(row.Text(2)),
                                .command = std::string(row.Text(3))});
    seen.erase(row.Id(0));
  }));
  for (const Id128& unknown : seen)
    tracks.processes.push_back({.process = unknown, .name = "", .command = ""});
  std::map<std::pair<Id128, int32_t>, std::string> names;
  const SqlPart threads{"SELECT process, tid, name FROM threads WHERE process IN (SELECT unnest(?::UUID[]))",
                        of_these};
  TRY(ForEachRow(store, threads, [&](const Rows& row) {
    names[{row.Id(0), static_cast<int32_t>(row.Int64(1))}] = row.Text(2);
  }));
  for (Track& track : tracks.tracks)
    if (track.tid.has_value()) track.thread = names[{track.process, *track.tid}];
  return {};
}

Status ReadEvents(Store& store, const model::Selection& selection, const TracksOptions& options,
                  int64_t data_end_ns, TrackBuilder& builder) {
  TRY(ReadGpuTracks(store, selection, builder));
  TRY(ReadSteps(store, selection, builder));
  TRY(ReadStates(store, selection, builder));
  TRY(ReadRanges(store, selection, data_end_ns, builder));
  TRY(ReadCalls(store, selection, builder));
  return ReadSamples(store, selection, options.helper_threads, builder);
}

}  // namespace

std::string_view NameOf(TrackKind kind) {
  constexpr std::string_view kNames[] = {"stream", "steps", "states", "samples", "ranges", "calls"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view NameOf(EventKind kind) {
  constexpr std::string_view kNames[] = {"kernel", "memcpy",     "memset",   "step", "state",
                                         "sample", "annotation", "operator", "call"};
  return kNames[static_cast<size_t>(kind)];
}

Result<Tracks> ReadTracks(Store& store, const model::Selection& selection, const TracksOptions& options) {
  ASSIGN_OR_RETURN(TimeRange range, ReadTimeRange(store, selection));
  range.from_ns = std::max<int64_t>(range.from_ns, 0);
  range.to_ns = std::max(range.to_ns, range.from_ns + 1);
  TRY(CheckEvents(store, selection, range));
  ASSIGN_OR_RETURN(const TimeRange known, ReadTimeRange(store, {}));
  TrackBuilder builder(Grid::Of(range, options.columns));
  TRY(ReadEvents(store, selection, options, known.to_ns, builder));
  if (builder.NeedsSecondPass()) TRY(ReadEvents(store, selection, options, known.to_ns, builder));
  Tracks tracks = builder.Take();
  TRY(AddUsers(store, selection, tracks));
  TRY(AddDevices(store, tracks));
  TRY(AddOwners(store, tracks));
  return tracks;
}

}  // namespace gpusonde::store
