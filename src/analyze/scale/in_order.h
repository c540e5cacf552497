// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "analyze/start_thread.h"
#include "base/result.h"

namespace gpusonde::analyze {

// Makes `count` things with several threads and passes each to `take` in order, one at a time; at most twice
// as many things as threads are in progress or waiting. `make` is called from any thread, `take` from one at
// a time. Errors: that of the first thing whose `make` fails; earlier things may or may not have been passed
// to `take`.
template <class Thing>
Status MakeInOrder(size_t count, size_t threads, const std::function<Result<Thing>(size_t)>& make,
                   const std::function<void(Thing)>& take) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<Thing>> made(count);
  size_t next = 0;
  size_t taken = 0;
  size_t failed = count;
  Error error;
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return next == count || failed < count || next < taken + 2 * threads; });
      if (next == count || failed < count) return;
      const size_t mine = next++;
      lock.unlock();
      Result<Thing> thing = make(mine);
      lock.lock();
      if (thing.has_value()) {
        made[mine] = *std::move(thing);
      } else if (mine < failed) {
        failed = mine;
        error = std::move(thing).error();
      }
      for (; taken < count && made[taken].has_value(); ++taken) {
        take(*std::move(made[taken]));
        made[taken].reset();
      }
      changed.notify_all();
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min(threads, count); ++i)
      if (!StartThread(others, work)) break;
    work();
  }
  if (failed < count) return std::unexpected(std::move(error));
  return {};
}

}  // namespace gpusonde::analyze
