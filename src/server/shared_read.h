// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <vector>

#include "base/cancellation.h"
#include "base/result.h"
#include "model/selection.h"

namespace gpusonde::server {

// Caches the results of one kind of read by selection, as long as the revision stays the same. A caller that
// asks for what another one is reading waits for that result, or reads if the other one is cancelled. Holds a
// few selections, and no large results. Thread-safe.
template <class T>
class SharedRead {
 public:
  explicit SharedRead(bool (*is_small)(const T& read)) : is_small_(is_small) {}

  // Returns what `read` returns, or returned before for this selection and revision. Errors and exceptions
  // are not cached, but callers that wait get them too.
  Result<T> Read(uint64_t revision, const model::Selection& selection,
                 const std::function<Result<T>()>& read) {
    std::promise<std::optional<Result<T>>> promise;
    std::unique_lock lock(mutex_);
    if (revision != revision_) kept_.clear();
    revision_ = revision;
    for (auto found = Find(selection); found != kept_.end(); found = Find(selection)) {
      const auto result = found->result;
      lock.unlock();
      if (const std::optional<Result<T>>& others = result.get(); others.has_value()) return *others;
      lock.lock();
    }
    if (kept_.size() == kMaxKept) kept_.erase(kept_.begin());
    const uint64_t number = ++reads_;
    kept_.push_back({number, selection, promise.get_future().share()});
    lock.unlock();
    try {
      Result<T> result = read();
      const bool cancelled = !result.has_value() && Cancellation::IsRequested();
      if (!result.has_value() || !is_small_(*result)) Forget(number);
      promise.set_value(cancelled ? std::nullopt : std::optional(result));
      return result;
    } catch (...) {
      Forget(number);
      promise.set_exception(std::current_exception());
      throw;
    }
  }

 private:
  void Forget(uint64_t number) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(kept_, [number](const Kept& kept) { return kept.number == number; });
  }

  static constexpr size_t kMaxKept = 4;
  struct Kept {
    uint64_t number = 0;
    model::Selection selection;
    std::shared_future<std::optional<Result<T>>> result;  // nullopt: cancelled
  };
  auto Find(const model::Selection& selection) {
    return std::ranges::find(kept_, selection, &Kept::selection);
  }

  bool (*is_small_)(const T& read);
  std::mutex mutex_;  // guards the members below
  uint64_t revision_ = 0;
  uint64_t reads_ = 0;
  std::vector<Kept> kept_;  // the oldest first
};

}  // namespace gpusonde::server
