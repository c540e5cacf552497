// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/signals.h"
#include "sources/ebpf/event.h"

namespace gpusonde::agent {

// Joins sums of single buckets into rows of `signals`, which hold many buckets. Not thread-safe.
class SignalRows {
 public:
  void Ingest(const ebpf::SignalSum& sum);

  // Writes the ingested sums. `identify` maps a pid to a process; sums of unknown processes are dropped.
  // `epoch_offset_ns` is added to monotonic times.
  void Write(const Id128& source, int64_t epoch_offset_ns,
             const std::function<std::optional<Id128>(int32_t pid)>& identify,
             model::BatchBuilder<decltype(model::kSignals)>& rows);

 private:
  std::vector<ebpf::SignalSum> sums_;
};

}  // namespace gpusonde::agent
