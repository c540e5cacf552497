// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id128.h"

namespace gpusonde::diagnose {

// A piece of GPU work, a wait for it, or an NVTX range.
struct Work {
  enum class Kind : uint8_t { kRange, kSync, kKernel, kCopy };
  Kind kind = Kind::kKernel;
  std::string_view name;  // read only during Ingest
  uint64_t shape = 0;     // a hash of grid and block, or bytes
  int64_t time_ns = 0;    // its end: it can't be reported earlier
  int64_t length_ns = 0;
};

struct StepSpan {
  Id128 type;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool cut = false;  // its beginning wasn't observed, so that it has no type
};

// Finds the steps of one process. Its anchor is work that occurs exactly once per step; a step lasts from one
// anchor to the next. A range that is named as a step ("train_step", "ProfilerStep#12") is the anchor if
// there is one. Otherwise the anchor is chosen by the amount of work between its occurrences, whatever time
// that takes: between anchors the amount is always about the same, but work that occurs once per layer is
// irregular, because the last layer of a step is followed by the rest of the step. Among the regular
// candidates the most frequent ones mark steps; the others mark groups of several steps. If a few kinds of
// intervals take turns in a fixed order (three micro-batches and an update, each with a sync), one round of
// them is a step. Syncs mark requests of varying size if the GPU is idle after them and hardly before. Steps
// that ended before the anchor was chosen are found as well. Not thread-safe.
class StepFinder {
 public:
  StepFinder();
  StepFinder(const StepFinder&) = delete;
  StepFinder& operator=(const StepFinder&) = delete;

  // Accepts work in any order. Work older than the watermark of Advance is counted as late and dropped.
  void Ingest(const Work& work);

  // Advances the watermark: all work before `time_ns` has been ingested. Returns the steps found since the
  // last call, in order; once an anchor is chosen, these include the steps before that.
  std::vector<StepSpan> Advance(int64_t time_ns);

  // Work is observed from `time_ns` on (`observed`), or no longer. No step spans a gap; the step under way
  // when observation resumes is cut. Returns steps like Advance.
  std::vector<StepSpan> Gap(int64_t time_ns, bool observed);

  // The anchor as text ("range step"); nullopt while none is chosen.
  std::optional<std::string> anchor() const;
  // Start of the step under way; nullopt before the first one.
  std::optional<int64_t> unfinished_since_ns() const { return step_start_ns_; }
  // Lower bound of the start of all steps yet to be returned; nullopt if unknown.
  std::optional<int64_t> needed_since_ns() const;
  // End of the newest work before the watermark.
  int64_t last_work_ns() const { return last_work_ns_; }
  // Number of late pieces of work, which were dropped.
  int64_t late() const { return late_; }

 private:
  // The identity of work that may recur: its kind and name.
  struct Token {
    Work::Kind kind;
    std::string name;  // for ranges without the trailing number
    uint64_t hash;
    bool is_step_name;
  };
  struct Piece {
    uint32_t token;
    uint64_t shape;
    int64_t time_ns;
    int64_t length_ns;
  };
  struct Occurrences;
  struct Regularity;
  struct Idle;
  struct Candidate;

  uint32_t AddToken(Work::Kind kind, std::string_view name);
  uint32_t TokenOf(const Work& work);
  uint64_t SignatureOf(const Piece& piece) const;
  void Follow(const Piece& piece, std::vector<StepSpan>& steps);
  bool EndsStep(const Piece& piece) const;
  void StartBefore(const Piece& anchor);
  void FollowNamedStep(const Piece& piece);
  Regularity Measure(const Occurrences& occurrences) const;
  void Choose(bool at_end, std::vector<StepSpan>& steps);
  const Candidate* BestNamedStep(const std::vector<Candidate>& candidates) const;
  const Candidate* BestAnchor(const std::vector<Candidate>& candidates, double min_kernel_step_ns) const;
  const Candidate* AnchorOfRounds(const std::vector<Candidate>& candidates, const Candidate& best) const;
  bool MarksByWork(const Candidate& candidate) const;
  const Candidate* EndOfRequests(const std::vector<Candidate>& candidates) const;
  Idle IdleAround(uint32_t token) const;
  std::vector<uint64_t> IntervalsOf(uint32_t token) const;
  bool RunsKernelsBetween(uint32_t token) const;
  StepSpan Close(int64_t end_ns);
  Id128 TypeOf(uint64_t fine);

  static constexpr size_t kKinds = 4;

  std::deque<Token> tokens_;
  // By kind. The keys point into tokens_, a deque, whose elements never move.
  std::array<std::unordered_map<std::string_view, uint32_t>, kKinds> tokens_by_name_;
  std::vector<Piece> pending_;  // after the watermark, in order of arrival
  std::vector<Piece> history_;  // all work while there is no anchor
  // A range that is named as a step, seen while another anchor is in use.
  std::optional<uint32_t> named_;
  int64_t named_seen_ = 0;
  int64_t pieces_since_named_ = 0;
  size_t choose_at_ = 0;  // length of the history at which to look for an anchor again
  std::optional<uint32_t> anchor_;
  double typical_work_ = 0;     // pieces of work per step
  bool needs_kernels_ = false;  // whether an anchor only ends a step in which kernels ran
  bool has_kernels_ = false;    // whether kernels ran in the step under way
  std::optional<int64_t> step_start_ns_;
  std::optional<int64_t> head_ns_;  // start of the work before the first anchor
  bool cut_ = false;
  uint64_t signature_ = 0;  // of the step under way
  int64_t pieces_ = 0;
  int64_t last_work_ns_ = 0;
  int64_t late_ = 0;
  std::map<uint64_t, int64_t> fine_types_;  // number of steps by signature
  int64_t typed_ = 0;
};

}  // namespace gpusonde::diagnose
