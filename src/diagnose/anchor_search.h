// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnose/work.h"

namespace gpusonde::diagnose {

// The identity of work that may recur: its kind and name.
struct WorkToken {
  Work::Kind kind;
  std::string name;  // for ranges without the trailing number
  uint64_t hash;
  bool is_step_name;
};

struct WorkPiece {
  uint32_t token;
  uint64_t shape;
  int64_t time_ns;  // its end
  int64_t length_ns;
};

// Observation began anew at `resumed_ns`, before the piece `at` of a history.
struct Break {
  size_t at;
  int64_t resumed_ns;
};

// Work that occurs a fixed number of times per step.
struct Anchor {
  uint32_t token;
  int occurrences;      // per step: 1, or more for a loop that is too short for a step
  double typical_work;  // pieces of work per step
  bool needs_kernels;   // whether it only ends a step in which kernels ran
};

// Finds the anchor of a program's steps in its work, in order of time. A range that is named as a step
// ("train_step", "ProfilerStep#12") is the anchor if there is one. Otherwise the anchor is chosen by the
// amount of work between its occurrences, whatever time that takes: between anchors the amount is always
// about the same, but work that occurs once per layer is irregular, because the last layer of a step is
// followed by the rest of the step. Among the regular candidates the most frequent ones mark steps; the
// others mark groups of several steps. If a few kinds of intervals take turns in a fixed order (three
// micro-batches and an update, each with a sync), one round of them is a step. Where equal layers are all
// that is frequent, a step ends with the sync after its copy of input, or after which the GPU is idle. Syncs
// mark requests of varying size if the GPU is idle after them and hardly before. A loop that is too short for
// a step is followed in groups of a fixed number of rounds. What lies between two occurrences is not compared
// if observation was interrupted there.
class AnchorSearch {
 public:
  // All must outlive it. Pieces refer to tokens by index; breaks are in their order.
  AnchorSearch(std::span<const WorkPiece> history, std::span<const Break> breaks,
               const std::deque<WorkToken>& tokens)
      : history_(history), breaks_(breaks), tokens_(tokens) {}

  enum class History : uint8_t {
    kYoung,  // the wait for the GPU that ends a step may not have occurred: no kernels or copies are accepted
    kGrowing,   // a better anchor may still appear
    kLong,      // no better anchor is to be expected, so frequent kernels are accepted as well
    kComplete,  // no work follows: the last chance to choose, also over a rare range that is named as a step
  };
  std::optional<Anchor> Find(History state) const;

 private:
  struct Occurrences;
  struct Frequency;
  struct Regularity;
  struct Idle;
  struct Intervals;
  struct Candidate;

  template <class Visit>
  void ForEachInterval(const Occurrences& occurrences, Visit visit) const;
  bool BreaksAt(size_t piece, size_t& next) const;
  Frequency FrequencyOf(const Occurrences& occurrences) const;
  Regularity Measure(const Occurrences& occurrences, const Frequency& frequency, Work::Kind kind) const;
  const Candidate* BestNamedStep(const std::vector<Candidate>& candidates) const;
  const Candidate* BestAnchor(const std::vector<Candidate>& candidates, double min_kernel_step_ns) const;
  bool MarksByWork(const Candidate& candidate) const;
  const Candidate* EndOfRequests(const std::vector<Candidate>& candidates) const;
  bool IsFollowedByIdleGpu(const Candidate& sync) const;
  Idle IdleAround(uint32_t token) const;
  Intervals IntervalsOf(uint32_t token) const;
  bool RunsKernelsBetween(uint32_t token) const;
  const Candidate* SyncAroundLayers(const std::vector<Candidate>& candidates, const Candidate& layer) const;
  bool IsTooEarly(const Candidate& best, const Candidate* sync, History state) const;
  const Candidate* WholeStep(const std::vector<Candidate>& candidates, const Candidate& best,
                             const Candidate* sync) const;
  const Candidate* AnchorOfRounds(const std::vector<Candidate>& candidates, const Candidate& best) const;

  std::span<const WorkPiece> history_;
  std::span<const Break> breaks_;
  const std::deque<WorkToken>& tokens_;
};

}  // namespace gpusonde::diagnose
