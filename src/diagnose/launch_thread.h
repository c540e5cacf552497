// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/time_range.h"

namespace gpusonde::diagnose {

// Which thread of a program launches its GPU work, by the calls and ranges of its threads; most calls are
// only sampled. A server's threads may take turns, one for each request. Not thread-safe.
class LaunchThread {
 public:
  // A call or a range of this thread that began at `time_ns`.
  void Ingest(int32_t tid, int64_t time_ns);

  // Forgets the calls of this thread.
  void Forget(int32_t tid);

  // Returns the thread with the most calls; of two that have about as many, the same one as before. Nullopt
  // if there were none.
  std::optional<int32_t> Usual();

  // Returns the thread that launched the work of a step: the usual one, unless that made no call during the
  // step while another made some. Calls before the step are forgotten: ask for steps in order.
  std::optional<int32_t> Of(const TimeRange& step);

 private:
  std::map<int32_t, int64_t> counts_;  // calls and ranges by thread; older ones count half
  int64_t counted_ = 0;                // of them since the counts were halved
  std::optional<int32_t> usual_;
  std::multimap<int64_t, int32_t> newest_;  // threads by time; only of a program with several such threads
};

}  // namespace gpusonde::diagnose
