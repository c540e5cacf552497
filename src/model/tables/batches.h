// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per spool frame that this store holds, so that a replay after a crash adds nothing twice.
struct BatchCommit {
  Id128 spool;
  int64_t sequence = 0;
  int64_t rows = 0;
  int64_t committed_ns = 0;
};

inline constexpr Table kBatches(
    "batches", Key{2},
    "One row per spool frame that this store holds, so that a replay after a crash adds nothing twice",
    Field("spool", &BatchCommit::spool, "", "which spool"),
    Field("sequence", &BatchCommit::sequence, "", "frame number"),
    Field("rows", &BatchCommit::rows, "", "rows in it"),
    Field("committed_ns", &BatchCommit::committed_ns, "ns",
          "newest time of its samples, metrics, signals, GPU work and runs; when it was stored, if it has "
          "none"));

}  // namespace gpusonde::model
