// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

namespace gpusonde::diagnose {

// Estimates up to which time all GPU work of a process has arrived. Each round (the time between two calls of
// Advance) delivers what the process did until shortly before, in some order. The next round's
// out-of-orderness is estimated from how far recent rounds reached behind the newest work of the round
// before. Times are ns since the epoch. Not thread-safe.
class Watermark {
 public:
  // Work that ended at `time_ns` has arrived.
  void Ingest(int64_t time_ns);

  // Ends the round. Returns the watermark: all work that ended before it is assumed to have arrived. It never
  // goes back, and reaches `now_ns - allowed_lateness_ns` unless recent rounds were later than that.
  int64_t Advance(int64_t now_ns, int64_t allowed_lateness_ns);

  // The next rounds may come from another agent, whose out-of-orderness has to be learnt.
  void ForgetOutOfOrderness() { out_of_order_ns_.clear(); }

 private:
  int64_t newest_ns_ = 0;                                      // of all work in earlier rounds
  int64_t round_oldest_ns_ = INT64_MAX, round_newest_ns_ = 0;  // of the work in this round
  // For each recent round with work: how far its oldest work lay behind the newest of the rounds before, and
  // how old its oldest work was.
  std::deque<int64_t> out_of_order_ns_;
  std::deque<int64_t> age_ns_;
  int64_t watermark_ns_ = 0;
};

}  // namespace gpusonde::diagnose
