// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "model/selection.h"
#include "store/queries/gpu_query.h"
#include "store/store.h"
#include "store/tracks/slices.h"

// What happened when, as a screen shows it: tracks of slices, as many as there are columns and not as many as
// there are events.
namespace gpusonde::store {

enum class TrackKind : uint8_t { kStream, kSteps, kStates, kSamples, kRanges, kCalls };
std::string_view NameOf(TrackKind kind);

// What an event is.
enum class EventKind : uint8_t {
  kKernel,
  kMemcpy,
  kMemset,
  kStep,
  kState,   // of a thread; its name is one of kThreadStates
  kSample,  // a function that a thread was seen in on a CPU
  kAnnotation,
  kOperator,
  kCall,
};
std::string_view NameOf(EventKind kind);

// The states that a thread is in at any moment, as the scheduler's signals have them (thread.running and so
// on).
inline constexpr std::string_view kThreadStates[] = {"running", "run_queue", "blocked_io", "blocked",
                                                     "stopped", "sleeping",  "waiting"};

struct EventName {
  EventKind kind{};
  std::string text;  // demangled
};

struct Track {
  TrackKind kind{};
  Id128 process;
  std::optional<Id128> device;    // of a stream
  std::optional<int64_t> stream;  // of a stream
  std::optional<int32_t> tid;     // of a thread, or of the steps of one of several loops
  std::string thread;             // its name
  int32_t rows = 1;
  // By row and start; names are indices into Tracks::names. In a track of states several slices share a start
  // and a length; busy_ns is the time in each state.
  std::vector<Slice> slices;
};

struct TrackProcess {
  Id128 process;
  int32_t pid = 0;
  std::string name;
  std::string command;
};

// A process that ran work on a device in the time, or within ten minutes of it.
struct DeviceUser {
  Id128 process;
  Id128 device;
  // When its work would have been recorded, sorted and disjoint; the rest of the time is not known.
  std::vector<TimeRange> observed;
};

struct Tracks {
  Grid grid;
  int64_t events = 0;
  std::vector<EventName> names;
  std::vector<GpuDevice> devices;       // of the tracks and users
  std::vector<TrackProcess> processes;  // of the tracks and users
  // By device and process; none without sessions: then all work is known.
  std::vector<DeviceUser> users;
  // Streams by device, process and number; then processes, those with most GPU work first, and in each its
  // steps, then its threads, those with most time on a CPU or in calls first.
  std::vector<Track> tracks;
  int64_t omitted = 0;  // tracks with less time than those
};

// More than this many events are refused.
inline constexpr int64_t kMaxTrackEvents = 20'000'000;

struct TracksOptions {
  int columns = 1'200;          // ≥ 1: of the screen
  bool helper_threads = false;  // with those that profilers run inside programs
};

// The tracks of the selection's time: `process` applies to all, `device` and `stream` to GPU work, `tid` to
// threads; the rest is ignored. What never ended ends with the data; what begins before the time or ends
// after it is whole. Errors: kInvalidArgument when the time holds too many events; those of Store::Query.
Result<Tracks> ReadTracks(Store& store, const model::Selection& selection, const TracksOptions& options);

}  // namespace gpusonde::store
