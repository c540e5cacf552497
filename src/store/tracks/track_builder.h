// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/id128.h"
#include "store/tracks/slices.h"
#include "store/tracks/state_sums.h"
#include "store/tracks/tracks.h"

namespace gpusonde::store {

// Identifies a track.
struct TrackKey {
  TrackKind kind{};
  Id128 process;
  Id128 device;      // of a stream
  int64_t lane = 0;  // stream or thread; of steps, the thread of their loop
  auto operator<=>(const TrackKey&) const = default;
};

// Collects events into tracks. Which tracks are shown is known when all events are: those with most time. Of
// so many tracks that their slices would take too much memory (a machine's threads are some thousand tracks
// of some thousand slices), the slices are only counted, and those of the tracks that are shown are made of
// the same events, added a second time. Memory is bounded by the numbers of tracks, columns and names,
// however many events there are. Not thread-safe.
class TrackBuilder {
 public:
  // Tracks and slices that are shown, and tracks and names that are kept until it is known which.
  static constexpr size_t kMaxTracks = 200;
  static constexpr size_t kMaxSlices = 300'000;
  static constexpr size_t kMaxTracksBuilt = 20'000;
  static constexpr size_t kMaxNames = 100'000;
  static constexpr size_t kMaxNameBytes = 4'096;
  // Of slices, about. More than kMaxSlices take, mostly: with three names in each of a track's cells, they
  // are 120 bytes each.
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // `max_bytes` is another kMaxBytes, for tests.
  explicit TrackBuilder(const Grid& grid, size_t max_bytes = kMaxBytes)
      : grid_(grid), max_bytes_(max_bytes) {}

  const Grid& grid() const { return grid_; }

  // The index of a name, the same for each event that has it.
  int32_t NameOf(EventKind kind, std::string_view text);
  void Add(const TrackKey& key, const TimeRange& event, int32_t row, int32_t name);
  // Time of a thread in a state within a bucket, or until its end if that is longer. Those of one bucket add
  // up.
  void AddState(const TrackKey& key, const TimeRange& bucket, int32_t name, int64_t time_ns);

  // The threads that have tracks, and their removal.
  std::set<std::pair<Id128, int32_t>> Threads() const;
  void Remove(const Id128& process, int32_t tid);

  // Call it when all events were added. True if their slices were only counted: then add all of them again.
  bool NeedsSecondPass();

  // The tracks in order, those that come last left out where there are too many, and the names that they use,
  // those of kernels demangled. Nothing may be added afterwards. Devices, processes and names of threads are
  // left to the caller.
  Tracks Take();

 private:
  struct Building {
    explicit Building(const Grid& grid) : slices(grid), states(grid) {}
    size_t slice_count() const { return slices.slices() + states.slices(); }
    size_t bytes() const { return slices.bytes() + states.bytes(); }
    void CountOnly() {
      slices.CountOnly();
      states.CountOnly();
    }
    SliceSums slices;
    StateSums states;
    int64_t running_ns = 0;  // of states
  };
  // The tracks that are shown, in order, and what is known of the others.
  struct Choice {
    std::vector<TrackKey> shown;
    int64_t events = 0;  // of all
    int64_t omitted = 0;
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using NameIndices = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

  Building* Find(const TrackKey& key);
  // Adds to a track, which must be in tracks_.
  template <class Action>
  void AddTo(Building& building, const Action& add);
  std::vector<TrackKey> InOrder() const;
  Choice Choose() const;
  Track TakeTrack(const TrackKey& key);

  Grid grid_;
  size_t max_bytes_;
  size_t bytes_ = 0;  // of the slices of all tracks
  bool counts_only_ = false;
  std::optional<Choice> choice_;  // in the second pass
  std::map<TrackKey, Building> tracks_;
  std::set<TrackKey> not_built_;
  std::vector<EventName> names_;
  std::map<EventKind, NameIndices> name_indices_;
};

}  // namespace gpusonde::store
