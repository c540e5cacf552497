// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "model/selection.h"
#include "store/store.h"

// Queries of the UI, the summary and the exporters over the profile tables.
namespace gpusonde::store {

// The CPU profile of the selection: samples summed by thread and stack, with their names. For time off the
// CPU the leaf of each stack is what the thread waited for, and `count` the number of sampled waits. A
// selection without samples gives an empty profile. Errors: those of Store::Query.
Result<model::Profile> ReadProfile(Store& store, const model::Selection& selection);

struct ThreadUse {
  int32_t tid = 0;
  std::string name;
  int64_t cpu_ns = 0;
};
struct ProcessUse {
  Id128 process;
  int32_t pid = 0;
  std::string name;
  std::string command;
  std::string container;  // as ContainerNames names it; empty: none
  int64_t cpu_ns = 0;
  int64_t started_ns = 0;
  std::optional<int64_t> exited_ns;
  std::vector<ThreadUse> threads;  // falling by cpu_ns, ties by tid
};
// Processes with samples in the selection, or, unless it is of idle GPUs, GPU work; by descending cpu_ns,
// then by pid.
Result<std::vector<ProcessUse>> ReadProcesses(Store& store, const model::Selection& selection);

struct Strip {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  // Mean busy CPUs in each of the equal buckets of [from_ns, to_ns); null where no source was recording.
  std::vector<std::optional<double>> values;
};
// Fails with kInvalidArgument unless a strip has this many buckets, 1 or more.
Status CheckBuckets(int buckets);
// CPU use over the selection's time, in `buckets` ≥ 1 buckets. Open ends of the selection are those of the
// data. Estimated from samples, and never finer than these support; of one process or thread exact where the
// scheduler's signals of it were recorded (metric thread.running).
Result<Strip> ReadCpuStrip(Store& store, const model::Selection& selection, int buckets);

struct Overview {
  struct SourceInfo {
    Id128 source;
    std::string kind;
    std::string host;
    std::string command;
    std::optional<double> sampling_hz;
    int32_t cpus = 0;
    int64_t started_ns = 0;
    std::optional<int64_t> ended_ns;
  };
  struct Drop {
    std::string reason;
    std::string meaning;
    bool lost = true;  // data is missing; else it has less detail than it could have
    int64_t count = 0;
  };
  std::vector<SourceInfo> sources;
  // First start and last end (or last sample) of the sources; nothing while there is no source.
  std::optional<int64_t> from_ns;
  std::optional<int64_t> to_ns;
  int64_t samples = 0;
  int64_t kernels = 0;
  bool simulated = false;   // any simulated device
  std::vector<Drop> drops;  // falling by count
};
Result<Overview> ReadOverview(Store& store);

// The sources of the overview alone, at a fraction of the cost.
Result<std::vector<Overview::SourceInfo>> ReadSources(Store& store);

// Whether there are samples of CPU time.
Result<bool> HasCpuSamples(Store& store);

// Whether any function of the store comes from this source file.
Result<bool> NamesFile(Store& store, const std::string& file);

}  // namespace gpusonde::store
