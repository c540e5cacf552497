// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "model/sketch.h"
#include "model/tables/kernel_windows.h"

namespace gpusonde::store {

// Sums GPU work by name and, where known, by launching stack: rows like those of table kernel_windows. Work
// is added in slices, each with the launches that may have started it, so that only those of one slice are in
// memory. Not thread-safe.
class WorkSummer {
 public:
  // Work that is summed together.
  struct KindKey {
    Id128 process;
    Id128 device;
    std::string_view name;  // mangled
    int64_t stream = 0;
    bool graph = false;
    std::optional<Id128> captured;  // the stack that captured it as a part of a graph
    auto operator<=>(const KindKey&) const = default;
  };
  // A launch with a sampled stack; `probability` is in (0, 1].
  struct Launch {
    Id128 process;
    int64_t session = 0;
    int64_t correlation = 0;
    int64_t start_ns = 0;
    int32_t tid = 0;
    Id128 stack;
    double probability = 1;
  };
  // Sums of a kind.
  struct Kind {
    uint32_t number = 0;
    Id128 process;
    bool captured = false;
    int64_t count = 0;
    int64_t duration_ns = 0;
    model::Sketch sketch;
    // Those of the last work, mostly of the next as well.
    std::optional<int64_t> session;
    uint32_t origin = 0;
  };

  // `sketches`: with sketches of durations, which take memory.
  explicit WorkSummer(bool sketches) : sketches_(sketches) {}

  // Launches of a slice come before its work.
  void AddLaunch(const Launch& launch);
  // A kind is valid as long as the summer.
  Kind& KindOf(const KindKey& key);
  // Without a correlation id it is known that no launch with a stack started it. `duration_ns` is at least 0.
  void Add(Kind& kind, int64_t session, std::optional<int64_t> correlation, int64_t start_ns,
           int64_t duration_ns);
  // Sums what each launch started, and forgets the launches.
  void EndSlice();

  // All sums, without times of their own: parts "all" and "captured" by kind, then "sampled".
  std::vector<model::KernelWindow> Rows() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A launch of the slice, and what it started of the first kind of work; the rest is in started_more_.
  struct Started {
    int64_t correlation = 0;
    int64_t start_ns = 0;
    double probability = 1;
    uint32_t origin = 0;
    uint32_t caller = 0;
    uint32_t next = kNone;  // of the first of an id: that of another id in the same slot
    uint32_t kind = kNone;
    int64_t duration_ns = 0;
  };
  struct Sampled {
    double weight = 0;
    double time_ns = 0;
    double variance_ns2 = 0;
  };
  struct Key {
    Id128 process;
    Id128 device;
    std::string name;
    int64_t stream = 0;
    bool graph = false;
    std::optional<Id128> captured;
    KindKey View() const { return {process, device, name, stream, graph, captured}; }
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const KindKey& key) const;
    size_t operator()(const Key& key) const { return (*this)(key.View()); }
    size_t operator()(const std::pair<Id128, int64_t>& origin) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& a, const KindKey& b) const { return a.View() == b; }
    bool operator()(const KindKey& a, const Key& b) const { return a == b.View(); }
    bool operator()(const Key& a, const Key& b) const { return a.View() == b.View(); }
  };

  static uint64_t Pair(uint32_t first, uint32_t second) { return uint64_t{first} << 32 | second; }
  uint32_t OriginOf(const Id128& process, int64_t session);
  void IndexLaunches();  // sorts them, too
  size_t SlotOf(uint32_t origin, int64_t correlation) const;
  bool IsOf(size_t launch, uint32_t origin, int64_t correlation) const;
  // Adds work to the launch that started it: of several with its id the last one before it. A launch of the
  // driver has the id of the runtime's launch around it, whose frame is in its stack.
  void AddToLaunch(uint32_t kind, uint32_t origin, int64_t correlation, int64_t start_ns,
                   int64_t duration_ns);
  // Null if none may have started it.
  Started* FindLaunch(uint32_t origin, int64_t correlation, int64_t start_ns);
  void Sum(const Started& launch, uint32_t kind, int64_t duration_ns);

  bool sketches_;
  std::unordered_map<Key, Kind, Hash, Equal> kinds_;
  // Numbers of processes with a session, and of stacks with a thread.
  std::unordered_map<std::pair<Id128, int64_t>, uint32_t, Hash> origins_;
  std::unordered_map<std::pair<Id128, int64_t>, uint32_t, Hash> caller_numbers_;
  std::vector<std::pair<Id128, int32_t>> callers_;
  std::vector<Started> launches_;
  std::vector<uint32_t> slots_;                         // a power of two; empty until work is added
  std::unordered_map<uint64_t, int64_t> started_more_;  // durations by launch and kind
  std::unordered_map<uint64_t, Sampled> sampled_;       // by kind and caller
};

}  // namespace gpusonde::store
