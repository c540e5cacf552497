// SPDX-License-Identifier: Apache-2.0
#include "diagnose/thread_split.h"

#include <algorithm>

namespace gpusonde::diagnose {

ThreadParts SplitTime(const ThreadTime& time) {
  ThreadParts parts{.interrupted = std::min(time.interrupted, time.running),
                    .run_queue = time.run_queue,
                    .waiting = time.waiting,
                    .sleeping = time.sleeping,
                    .network = time.network,
                    .stopped = time.stopped};
  const double ran = time.running - parts.interrupted;
  parts.reclaim = std::min(time.reclaim, ran + time.blocked + time.blocked_io);
  const double running = std::min(parts.reclaim, ran);
  const double blocked = std::min(parts.reclaim - running, time.blocked);
  parts.cpu = ran - running;
  parts.blocked = time.blocked - blocked;
  parts.blocked_io = std::max(0.0, time.blocked_io - (parts.reclaim - running - blocked));
  return parts;
}

}  // namespace gpusonde::diagnose
