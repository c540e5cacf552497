// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/id128.h"
#include "store/tracks/slices.h"
#include "store/tracks/tracks.h"

namespace gpusonde::store {

// Identifies a track.
struct TrackKey {
  TrackKind kind{};
  Id128 process;
  Id128 device;      // of a stream
  int64_t lane = 0;  // stream or thread
  auto operator<=>(const TrackKey&) const = default;
};

// Collects events into tracks. Memory is bounded by the numbers of tracks, columns and names, however many
// events there are. Not thread-safe.
class TrackBuilder {
 public:
  // Tracks and slices that are shown, and tracks and names that are kept until it is known which.
  static constexpr size_t kMaxTracks = 200;
  static constexpr size_t kMaxSlices = 300'000;
  static constexpr size_t kMaxTracksBuilt = 2'000;
  static constexpr size_t kMaxNames = 100'000;
  static constexpr size_t kMaxNameBytes = 4'096;

  explicit TrackBuilder(const Grid& grid) : grid_(grid) {}

  const Grid& grid() const { return grid_; }

  // The index of a name, the same for each event that has it.
  int32_t NameOf(EventKind kind, std::string_view text);
  void Add(const TrackKey& key, const TimeRange& event, int32_t row, int32_t name);
  // Time of a thread in a state within a bucket. Those of one bucket add up.
  void AddState(const TrackKey& key, const TimeRange& bucket, int32_t name, int64_t time_ns);

  // The threads that have tracks, and their removal.
  std::set<std::pair<Id128, int32_t>> Threads() const;
  void Remove(const Id128& process, int32_t tid);

  // The tracks in order, those that come last left out where there are too many, and the names that they use,
  // those of kernels demangled. Nothing may be added afterwards. Devices, processes and names of threads are
  // left to the caller.
  Tracks Take();

 private:
  struct Cell {
    int64_t start_ns = 0;
    int64_t length_ns = 0;
    int32_t name = 0;
    auto operator<=>(const Cell&) const = default;
  };
  struct Building {
    explicit Building(const Grid& grid) : slices(grid) {}
    SliceSums slices;
    std::map<Cell, int64_t> states;  // time in each
    int64_t running_ns = 0;          // of states
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using NameIndices = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

  Building* Find(const TrackKey& key);
  std::vector<TrackKey> InOrder() const;
  static std::vector<Slice> SlicesOf(Building& building);

  Grid grid_;
  std::map<TrackKey, Building> tracks_;
  std::set<TrackKey> not_built_;
  std::vector<EventName> names_;
  std::map<EventKind, NameIndices> name_indices_;
};

}  // namespace gpusonde::store
