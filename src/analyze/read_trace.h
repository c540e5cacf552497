// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "analyze/trace_state.h"
#include "base/result.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

// Which shards of a trace to read: those whose index is `part` modulo `parts`.
struct Share {
  uint64_t part = 0;
  uint64_t parts = 1;
};

struct ReadOptions {
  std::string path;  // for errors
  int threads = 1;
  bool partial = false;  // shards that can't be read are counted and skipped
  bool keep_records = true;
  Share share;
};

// Reads a trace with several threads: each takes the next shard under a lock and parses it in parallel.
// Errors: those of the trace; with several errors, that of the earliest shard.
Result<TraceState> ReadTrace(importers::Trace& trace, const ReadOptions& options);

}  // namespace gpusonde::analyze
