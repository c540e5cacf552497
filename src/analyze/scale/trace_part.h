// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/detail/read_detail.h"
#include "analyze/read_trace.h"
#include "analyze/report_builder.h"
#include "analyze/timeline/process_timeline.h"
#include "analyze/trace_state.h"
#include "base/result.h"
#include "importers/trace.h"

// Divides an analysis among processes: each analyses a part, and the joined parts give the result of a single
// process.
namespace gpusonde::analyze {

// The intermediate result of one process for one trace.
struct TracePart {
  std::string path;
  importers::TraceInfo info;
  TraceState state;
  // True if the process read the whole trace and has built its timelines; otherwise its records must be
  // joined with those of others.
  bool whole = false;
  std::vector<RankResult> ranks;
  DetailResult detail;  // of the whole trace, in one of its parts

  // Everything but the path and the records.
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(info.format);
    archive(info.epoch_offset_ns);
    archive(info.rank);
    archive(info.truncated);
    archive(info.sampled_calls);
    archive(info.possible_launchers);
    archive(state);
    archive(whole);
    archive(ranks);
    archive(detail);
    archive.Require(info.format <= importers::TraceFormat::kSonde && info.sampled_calls >= 0 &&
                    info.possible_launchers >= 0);
    for (const RankResult& rank : ranks) archive.Require(HasOnlyKnownNames(rank, state.names().size()));
  }

 private:
  static bool HasOnlyKnownNames(const RankResult& rank, size_t names);
};

FollowOptions FollowOptionsOf(const Options& options);

// How traces are divided: if there are at least as many as parts, each goes to one part, with parts of about
// equal size; fewer traces are read by all parts together, shard by shard. Depends only on the sizes of the
// files.
class Division {
 public:
  // Errors: kNotFound and others for files whose size can't be read.
  static Result<Division> Make(const std::vector<std::string>& paths, uint64_t parts);
  // Whether all parts share all traces.
  bool IsShared() const { return owners_.empty(); }
  // The number of traces that a part reads anything of.
  size_t CountOf(size_t traces, uint64_t part) const;
  // The share of a trace that a part reads; empty if another part reads all of it.
  std::optional<Share> Of(size_t trace, uint64_t part) const;
  // Whether the part reads the trace in detail: one part does, all of it.
  bool ReadsDetail(size_t trace, uint64_t part) const;

 private:
  uint64_t parts_ = 1;
  std::vector<uint64_t> owners_;  // by trace; empty: all together
};

// Reads a part, as many traces in parallel as there are threads, and passes each to `take` in the given
// order, also traces that the part doesn't read. Errors: as Analyze.
Status ReadParts(const std::vector<std::string>& paths, const Options& options, const Division& division,
                 uint64_t part, const std::function<void(TracePart)>& take);

// Reads all of an opened trace, which `path` names in what comes of it. Options::rank_from and those of a
// second reading don't apply. Errors: those of reading.
Result<TracePart> ReadOpened(importers::Trace& trace, const std::string& path, const Options& options);

// Applies Options::temp_limit to an analysis of these files; ReadParts does it for its own.
void LimitTemporarySpace(const std::vector<std::string>& paths, const Options& options);

// How many threads an Options::threads of 0 means.
int ThreadsOf(const Options& options);

}  // namespace gpusonde::analyze
