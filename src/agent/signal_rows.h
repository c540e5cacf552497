// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/signals.h"
#include "sources/ebpf/host_signals.h"

namespace gpusonde::agent {

// From sums of single buckets to rows of `signals`, which hold many. Not thread-safe.
class SignalRows {
 public:
  void Take(const ebpf::HostSignals::Sum& sum);

  // Writes what was taken: `identify` says who a pid is; what belongs to nobody known is left out. Monotonic
  // times are moved by `epoch_offset_ns`.
  void Write(const Id128& source, int64_t epoch_offset_ns,
             const std::function<std::optional<Id128>(int32_t pid)>& identify,
             model::BatchBuilder<decltype(model::kSignals)>& rows);

 private:
  using Key = std::tuple<int32_t, int32_t, int32_t, gpusonde_signal>;  // pid, tid, other, signal
  std::map<Key, std::map<int64_t, int64_t>> sums_;                     // by start of the bucket
};

}  // namespace gpusonde::agent
