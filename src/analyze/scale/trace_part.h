// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/read_trace.h"
#include "analyze/report_builder.h"
#include "analyze/timeline/process_timeline.h"
#include "analyze/trace_state.h"
#include "base/result.h"
#include "importers/trace.h"

// Dividing a job among processes: each takes a part, and the parts put together are what one process would
// have found.
namespace gpusonde::analyze {

// What one process knows of one trace.
struct TracePart {
  std::string path;
  importers::TraceInfo info;
  TraceState state;
  // A process that read all of a trace has followed its ranks too; of one that read some, the records are
  // still to be put together with those of others.
  bool whole = false;
  std::vector<RankResult> ranks;

  // All but the path and the records.
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(info.format);
    archive(info.epoch_offset_ns);
    archive(info.rank);
    archive(info.truncated);
    archive(state);
    archive(whole);
    archive(ranks);
    archive.Require(info.format <= importers::TraceFormat::kSonde);
    for (const RankResult& rank : ranks) archive.Require(HasOnlyKnownNames(rank, state.names().size()));
  }

 private:
  static bool HasOnlyKnownNames(const RankResult& rank, size_t names);
};

// How traces are divided: as many as there are parts or more go whole to one part each, so that the parts are
// about equally large; fewer are read by all parts together, shard by shard. Follows from the sizes of the
// files alone.
class Division {
 public:
  // Errors: kNotFound and others for files that can't be looked at.
  static Result<Division> Make(const std::vector<std::string>& paths, uint64_t parts);
  // Whether all parts read all traces.
  bool IsShared() const { return owners_.empty(); }
  // Of how many of all traces a part reads something.
  size_t CountOf(size_t traces, uint64_t part) const;
  // What a part reads of a trace; nothing: another part reads all of it.
  std::optional<Share> Of(size_t trace, uint64_t part) const;

 private:
  uint64_t parts_ = 1;
  std::vector<uint64_t> owners_;  // by trace; empty: all together
};

// Reads what a part has to, as many traces at once as there are threads for, and hands each over, in the
// order given, also those that it has nothing of. Errors: as Analyze.
Status ReadParts(const std::vector<std::string>& paths, const Options& options, const Division& division,
                 uint64_t part, const std::function<void(TracePart)>& take);

// How many threads an Options::threads of 0 means.
int ThreadsOf(const Options& options);

}  // namespace gpusonde::analyze
