// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/extent.h"
#include "analyze/name_table.h"
#include "analyze/recorded_time.h"
#include "base/time_range.h"
#include "importers/event.h"

namespace gpusonde::analyze {

// The steps of a process: what a program repeats, such as training steps.
struct Steps {
  std::string label;              // name of their ranges without numbers; empty: none were found
  std::vector<TimeRange> ranges;  // by start, disjoint
  // Where none were found, the ranges that were not kept of a label that may be the steps: without them,
  // steps would seem to last longer. 0 without such a label.
  int64_t left_out = 0;
};

// The ranges of a trace that may be steps, or tell why a step takes long: of each process the longest,
// because what repeats all the time and surrounds the rest is long. Which are kept doesn't depend on the
// order in which they are added.
class StepCandidates {
 public:
  static constexpr size_t kMaxRanges = 32'768;  // of a process; up to twice as many until Finish

  // The number of a range's name without its digits: "ProfilerStep#12" and "ProfilerStep#13" have the same.
  uint32_t Label(std::string_view name);
  void Add(std::span<const importers::Range> ranges);
  void Merge(const StepCandidates& other);
  // Reduces to the bounds.
  void Finish();

  // The steps of a process: the ranges whose label begins with `prefix`, if that isn't empty. Else those of
  // PyTorch's profiler, or the label that repeats at least three times without overlaps, isn't an operator's
  // and covers most of the time: of those that cover 80 % the one with the most ranges, else the one that
  // covers most, but at least half. Times are by `clock`.
  Steps StepsOf(int64_t process, std::string_view prefix, const ClockWithout& clock = ClockWithout({})) const;
  // All ranges of a process by label; empty if some were not kept.
  std::map<std::string, std::vector<TimeRange>> RangesOf(int64_t process) const;
  // Whether all ranges of all processes were kept.
  bool HasAll() const;
  // The processes that have ranges.
  std::vector<int64_t> Processes() const;
  // When any range was open whose label begins so, by `clock`; sorted, disjoint.
  std::vector<TimeRange> TimesOf(int64_t process, std::string_view prefix,
                                 const ClockWithout& clock = ClockWithout({})) const;

  template <class Archive>
  void Transfer(Archive& archive) {
    labels_.Transfer(archive);
    archive(by_process_);
    for (const auto& [process, ranges] : by_process_) {
      for (const Labelled& range : ranges.kept)
        archive.Require(range.label < labels_.size() && range.start_ns <= range.end_ns &&
                        IsValid({range.start_ns, range.end_ns}));
      for (const auto& [label, dropped] : ranges.dropped)
        archive.Require(label < labels_.size() && dropped.count > 0 && dropped.total_ns >= 0 &&
                        !dropped.extent.IsEmpty() &&
                        IsValid({dropped.extent.first_ns, dropped.extent.last_ns}));
    }
  }

 private:
  struct Labelled {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    uint32_t label = 0;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(start_ns);
      archive(end_ns);
      archive(label);
    }
  };
  // Those of a label that are not kept.
  struct Dropped {
    int64_t count = 0;
    int64_t total_ns = 0;
    Extent extent;

    void Merge(const Dropped& other);
    template <class Archive>
    void Transfer(Archive& archive) {
      archive(count);
      archive(total_ns);
      archive(extent);
    }
  };
  struct Ranges {
    std::vector<Labelled> kept;
    std::map<uint32_t, Dropped> dropped;  // by label

    void Reduce();
    template <class Archive>
    void Transfer(Archive& archive) {
      archive(kept);
      archive(dropped);
    }
  };

  NameTable labels_;
  std::map<int64_t, Ranges> by_process_;
};

}  // namespace gpusonde::analyze
