// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "otlp/push.h"
#include "store/store.h"

namespace gpusonde::otlp {

// Renders the profiles of a store that is being written, window after window, so that every row is in one:
// CPU time, GPU time and off-CPU time, a request each, as far as there is any. Not thread-safe.
class ProfileWindows {
 public:
  // The first window begins at `from_ns`, since the epoch. `store` must outlive it.
  ProfileWindows(store::Store& store, int64_t from_ns) : store_(store), from_ns_(from_ns) {}

  // The profiles until `to_ns`, since the epoch; none if that is not after the last window. A window that
  // can't be read, as one may need too much memory, is divided; what then remains is in the next call's
  // windows. Errors: those of the queries; kUnsupported, kOutOfSpace.
  Result<std::vector<Request>> Render(int64_t to_ns);

 private:
  Status RenderWindow(int64_t to_ns, std::vector<Request>& requests);

  store::Store& store_;
  int64_t from_ns_;
  int64_t max_window_ns_ = kMaxWindowNs;  // less after an error

  static constexpr int64_t kMinWindowNs = kNanosPerSecond;
  static constexpr int64_t kMaxWindowNs = 3600 * kNanosPerSecond;
};

}  // namespace gpusonde::otlp
