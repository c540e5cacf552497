// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exporters/gpu_account.h"
#include "server/api.h"
#include "server/flame_tree.h"
#include "server/line_times.h"
#include "store/queries/gpu_query.h"
#include "store/queries/metric_query.h"
#include "store/queries/profile_query.h"

// The bodies that docs/api.md describes.
namespace gpusonde::server {

// What a page calls a device: "GPU 0", of a MIG instance with its part, where traces have devices of the same
// number with the rank or the trace.
std::string LabelOf(const store::GpuDevice& device);

std::string OverviewJson(const store::Overview& overview, const ApiFacts& facts);

struct AllStrips {
  const store::Strip& cpu;
  int64_t cpus = 0;  // the strip's upper end: how many can be busy at once; 0 when unknown
  std::vector<store::DeviceStrip> gpus;
  std::vector<store::MetricStrip> metrics;
  store::DeviceMarks marks;
};
std::string StripsJson(const AllStrips& strips);

std::string DevicesJson(const std::vector<store::DeviceUse>& devices);

// With users, processes have the key `gpus`, and those without CPU time come last.
std::string ProcessesJson(std::vector<store::ProcessUse> processes,
                          const std::optional<std::vector<store::GpuUser>>& users);

// Without facts: no GPU did anything.
std::string SummaryJson(const std::optional<exporters::GpuFacts>& gpu);

std::string FlameTreeJson(const FlameTree& tree);

// A source file with the time of each line.
struct SourceFile {
  struct Times {
    std::map<int32_t, LineTime> lines;
    int64_t total_ns = 0;  // of the whole selection, in this file and elsewhere
  };
  std::string file;
  Times cpu;
  Times gpu;
  Times waits;
  Result<SourceText> text;
};
std::string SourceJson(const SourceFile& source);

// Number of CPUs of all observed hosts. Several runs on one host count once, with the largest number.
int64_t CpusOf(std::span<const store::Overview::SourceInfo> sources);

}  // namespace gpusonde::server
