// SPDX-License-Identifier: Apache-2.0
#include "diagnose/thread_split.h"

#include <algorithm>

namespace gpusonde::diagnose {

ThreadParts SplitTime(const ThreadTime& time) {
  using enum ThreadState;
  ThreadParts parts;
  for (const ThreadState whole : {kRunQueue, kWaiting, kSleeping, kNetwork, kStopped})
    parts[whole] = time[whole];
  parts[kInterrupted] = std::min(time[kInterrupted], time[kRunning]);
  const double ran = time[kRunning] - parts[kInterrupted];
  parts[kReclaim] = std::min(time[kReclaim], ran + time[kBlocked] + time[kBlockedIo]);
  const double running = std::min(parts[kReclaim], ran);  // of the reclaim
  const double blocked = std::min(parts[kReclaim] - running, time[kBlocked]);
  parts[kRunning] = ran - running;
  parts[kBlocked] = time[kBlocked] - blocked;
  parts[kBlockedIo] = std::max(0.0, time[kBlockedIo] - (parts[kReclaim] - running - blocked));
  return parts;
}

}  // namespace gpusonde::diagnose
