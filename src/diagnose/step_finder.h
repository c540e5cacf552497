// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id128.h"
#include "diagnose/anchor_search.h"
#include "diagnose/work.h"

namespace gpusonde::diagnose {

struct StepSpan {
  Id128 type;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t work = 0;  // kernels and copies in it
  bool cut = false;  // its beginning wasn't observed, so that it has no type
};

// Finds the steps of one process: chooses an anchor (anchor_search.h) and follows it; a step lasts from one
// occurrence to the next. Steps that ended before the anchor was chosen are found as well. Not thread-safe.
class StepFinder {
 public:
  StepFinder();
  StepFinder(const StepFinder&) = delete;
  StepFinder& operator=(const StepFinder&) = delete;

  // Accepts work in any order. Work older than the watermark of Advance is counted as late and dropped.
  void Ingest(const Work& work) {
    const WorkTime time{work.time_ns, work.length_ns};
    Ingest(work, {&time, 1});
  }
  // Pieces of work that differ by their times only; those of `work` are not read.
  void Ingest(const Work& work, std::span<const WorkTime> times);

  // Advances the watermark: all work before `time_ns` has been ingested. Returns the steps found since the
  // last call, in order; once an anchor is chosen, these include the steps before that.
  std::vector<StepSpan> Advance(int64_t time_ns);

  // Work is observed from `time_ns` on (`observed`), or no longer. No step spans a gap; the step under way
  // when observation resumes is cut. An anchor may be chosen from what was observed before and after gaps, as
  // the inject library may observe a program for a few steps at a time. Returns steps like Advance.
  std::vector<StepSpan> Gap(int64_t time_ns, bool observed);

  // No work follows: a history that is too short to choose an anchor from otherwise is enough. Returns steps
  // like Advance.
  std::vector<StepSpan> Finish();

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
  uint32_t AddToken(Work::Kind kind, std::string_view name);
  uint32_t TokenOf(const Work& work);
  uint64_t SignatureOf(const WorkPiece& piece) const;
  void Follow(const WorkPiece& piece, std::vector<StepSpan>& steps);
  bool EndsStep(const WorkPiece& piece);
  void StartBefore(const WorkPiece& anchor);
  void StartAnew();
  void Resume(int64_t time_ns);
  int64_t ObservedNs() const;
  void ForgetHistory(size_t pieces);
  void FollowNamedStep(const WorkPiece& piece);
  void Choose(bool at_end, std::vector<StepSpan>& steps);
  void Use(const Anchor& anchor, std::vector<StepSpan>& steps);
  StepSpan Close(int64_t end_ns);
  Id128 TypeOf(uint64_t fine);

  static constexpr size_t kKinds = 4;

  std::deque<WorkToken> tokens_;
  // By kind. The keys point into tokens_, a deque, whose elements never move.
  std::array<std::unordered_map<std::string_view, uint32_t>, kKinds> tokens_by_name_;
  std::vector<WorkPiece> pending_;  // after the watermark
  std::vector<WorkPiece> history_;  // all work while there is no anchor
  std::vector<Break> breaks_;       // in the history
  // A range that is named as a step, seen while another anchor is in use.
  std::optional<uint32_t> named_;
  int64_t named_seen_ = 0;
  int64_t pieces_since_named_ = 0;
  size_t choose_at_ = 0;         // length of the history at which to look for an anchor again
  int64_t choose_after_ns_ = 0;  // when to look again in a long history
  std::optional<uint32_t> anchor_;
  int occurrences_per_step_ = 1;
  int occurrences_ = 0;         // of the anchor in the step under way
  double typical_work_ = 0;     // pieces of work per step
  bool needs_kernels_ = false;  // whether an anchor only ends a step in which kernels ran
  bool has_kernels_ = false;    // whether kernels ran since the last anchor
  std::optional<int64_t> step_start_ns_;
  std::optional<int64_t> head_ns_;  // start of the work before the first anchor
  bool cut_ = false;
  uint64_t signature_ = 0;  // of the step under way
  int64_t pieces_ = 0;
  int64_t gpu_pieces_ = 0;  // kernels and copies in the step under way
  int64_t last_work_ns_ = 0;
  int64_t late_ = 0;
  std::map<uint64_t, int64_t> fine_types_;  // number of steps by signature
  int64_t typed_ = 0;
};

}  // namespace gpusonde::diagnose
