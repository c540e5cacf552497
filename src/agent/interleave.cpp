// SPDX-License-Identifier: Apache-2.0
#include "agent/interleave.h"

namespace gpusonde::agent {
namespace {

// Hands out Python frames one run at a time: up to the next entry frame.
class Runs {
 public:
  explicit Runs(std::span<const gpusonde_python_frame> frames) : frames_(frames) {}

  bool any_left() const { return next_ < frames_.size(); }

  void TakeOne(std::vector<MergedFrame>& merged) {
    while (any_left()) {
      const gpusonde_python_frame& frame = frames_[next_];
      // A frame without code only marks a run that had no frame yet.
      if (frame.code != 0) merged.push_back({MergedFrame::Kind::kPython, next_});
      ++next_;
      if ((frame.instruction & GPUSONDE_PYTHON_IS_ENTRY) != 0) return;
    }
  }

 private:
  std::span<const gpusonde_python_frame> frames_;
  size_t next_ = 0;
};

}  // namespace

std::vector<MergedFrame> Interleave(size_t native_frames, const std::function<bool(size_t)>& is_evaluator,
                                    std::span<const gpusonde_python_frame> python) {
  std::vector<MergedFrame> merged;
  merged.reserve(native_frames + python.size() + 1);
  Runs runs(python);
  for (size_t i = 0; i < native_frames; ++i) {
    if (runs.any_left() && is_evaluator(i))
      runs.TakeOne(merged);
    else
      merged.push_back({MergedFrame::Kind::kNative, i});
  }
  if (!runs.any_left()) return merged;
  merged.push_back({MergedFrame::Kind::kMissing});
  while (runs.any_left()) runs.TakeOne(merged);
  return merged;
}

}  // namespace gpusonde::agent
