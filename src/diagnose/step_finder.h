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

// Something that a process did with its GPU, or said of itself.
struct Work {
  enum class Kind : uint8_t { kRange, kSync, kKernel, kCopy };
  Kind kind = Kind::kKernel;
  std::string_view name;  // looked at while it is taken only
  uint64_t shape = 0;     // grid and block, or bytes
  int64_t time_ns = 0;    // its end: nobody can tell of it earlier
  int64_t length_ns = 0;
};

struct StepSpan {
  Id128 type;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool cut = false;  // it began earlier, while nobody listened: its type tells nothing
};

// Finds the steps of one process: something that comes once in each is its anchor, and a step lasts from one
// to the next. A range that is named as a step ("train_step", "ProfilerStep#12") is the anchor wherever there
// is one. Otherwise the anchor is chosen: what comes once a step has as much work between one time and the
// next every time, however long that takes; what comes once a layer doesn't, since the last layer is followed
// by the rest of the step. Of those that qualify the most frequent ones mark steps, the others several of
// them. Steps that ended before the anchor was chosen are found, too. Not thread-safe.
class StepFinder {
 public:
  StepFinder();
  StepFinder(const StepFinder&) = delete;
  StepFinder& operator=(const StepFinder&) = delete;

  // In any order; what is older than work that was looked at already is counted and passed over.
  void Take(const Work& work);

  // All work before `time_ns` was passed to Take. Returns the steps found since the last call, in order;
  // those of before the anchor was chosen come at once.
  std::vector<StepSpan> Advance(int64_t time_ns);

  // Work is observed from `time_ns` on (`heard`), or no longer: no step reaches across. The one under way
  // when observation begins again is cut. Returns steps like Advance.
  std::vector<StepSpan> Gap(int64_t time_ns, bool heard);

  // The anchor that was chosen, for a person: "range step".
  std::optional<std::string> anchor() const;
  // Begin of the step under way; nothing before the first one.
  std::optional<int64_t> unfinished_since_ns() const { return step_start_ns_; }
  // No step that is found later begins before this; nothing if none can be told yet.
  std::optional<int64_t> needed_since_ns() const;
  // The last work that was taken note of.
  int64_t last_work_ns() const { return last_work_ns_; }
  // Pieces of work that came too late.
  int64_t late() const { return late_; }

 private:
  // What may come again: work of one kind and name.
  struct Token {
    Work::Kind kind;
    std::string name;  // of a range without the number at its end
    uint64_t hash;
    bool says_step;
  };
  struct Piece {
    uint32_t token;
    uint64_t shape;
    int64_t time_ns;
    int64_t length_ns;
  };
  struct Occurrences;
  struct Regularity;
  struct Candidate;

  uint32_t AddToken(Work::Kind kind, std::string_view name);
  uint32_t TokenOf(const Work& work);
  uint64_t SignatureOf(const Piece& piece) const;
  void Follow(const Piece& piece, std::vector<StepSpan>& steps);
  void StartBefore(const Piece& anchor);
  void FollowNamedStep(const Piece& piece);
  Regularity Measure(const Occurrences& occurrences) const;
  void Choose(bool at_end, std::vector<StepSpan>& steps);
  const Candidate* BestNamedStep(const std::vector<Candidate>& candidates) const;
  const Candidate* BestAnchor(const std::vector<Candidate>& candidates, double shortest_of_kernels_ns) const;
  StepSpan Close(int64_t end_ns);
  Id128 TypeOf(uint64_t fine);

  static constexpr size_t kKinds = 4;

  std::deque<Token> tokens_;
  // By kind; the names are those of tokens_, which stay where they are.
  std::array<std::unordered_map<std::string_view, uint32_t>, kKinds> tokens_by_name_;
  std::vector<Piece> waiting_;  // not yet Advance'd over; in the order they were taken
  std::vector<Piece> history_;  // while there is no anchor
  // Of a range that is named as a step, while another anchor holds.
  std::optional<uint32_t> named_;
  int64_t named_seen_ = 0;
  int64_t pieces_since_named_ = 0;
  size_t choose_at_ = 0;  // length of the history
  std::optional<uint32_t> anchor_;
  double typical_work_ = 0;  // pieces of work in a step
  std::optional<int64_t> step_start_ns_;
  std::optional<int64_t> head_ns_;  // begin of the work before the first anchor
  bool cut_ = false;
  uint64_t signature_ = 0;  // of the step under way
  int64_t pieces_ = 0;
  int64_t last_work_ns_ = 0;
  int64_t late_ = 0;
  std::map<uint64_t, int64_t> fine_types_;  // how often each was seen
  int64_t typed_ = 0;
};

}  // namespace gpusonde::diagnose
