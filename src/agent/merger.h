// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sources/source.h"

namespace gpusonde::agent {

// Merges the events of several sources by time: sources deliver in buffers of their own and in any order, but
// a stack has to be resolved with the mappings at the time of its sample. Not thread-safe.
class Merger {
 public:
  // Takes samples, off-CPU begins and ends, side-band events, calls and graph nodes; copies their stacks and
  // texts. Must not be called during Drain.
  void Ingest(sources::Event&& event);

  // Visits, by time, the events up to `until_ns` (CLOCK_MONOTONIC, inclusive) and forgets them; later ones
  // wait. Of the same time, side-band events come first, so that a mapping precedes the samples in it, and
  // ends of off-CPU time last, after their begins; else the order is that of ingestion.
  void Drain(int64_t until_ns, const sources::Source::Visit& visit);

  // Whether the process becomes another program (exec) after `time_ns`, according to the events that wait or
  // are being drained.
  bool IsReplacedAfter(int32_t pid, int64_t time_ns) const;

  // The event with which the process began, if it waits.
  const perf::SidebandEvent* ForkOf(int32_t pid) const;

 private:
  struct Waiting {
    int64_t time_ns = 0;
    int rank = 0;  // among events of the same time
    size_t first_word = 0;
    sources::Event event;  // its stack and texts are in words_ and below
    std::string domain, name;
  };
  void Restore(Waiting& waiting) const;
  void Keep(const std::vector<size_t>& order, size_t first);

  std::vector<Waiting> waiting_;
  std::vector<uint64_t> words_;                             // of all stacks
  std::unordered_map<int32_t, int64_t> execs_;              // time of the last one that waits, by pid
  std::unordered_map<int32_t, perf::SidebandEvent> forks_;  // of processes, likewise
};

}  // namespace gpusonde::agent
