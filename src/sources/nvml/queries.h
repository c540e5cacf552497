// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/metric_catalogue.h"
#include "sources/nvml/gpm.h"
#include "sources/nvml/library.h"

namespace gpusonde::nvml {

// A query is an NVML call to one device, and how its results become metric values.

// The device, the call or a part of it doesn't exist for this caller, and never will.
bool IsUnsupported(gpusonde_nvml_result result);

// A device's state that is kept between calls.
struct DeviceCache {
  std::optional<MigPlace> mig;          // of a MIG instance
  std::unique_ptr<GpmSamples> samples;  // null before the first
  bool plain_memory_info = false;       // its driver lacks nvmlDeviceGetMemoryInfo_v2
  bool process_samples_begun = false;
  uint64_t last_process_sample_us = 0;  // of NVML's own clock
};

// Collects the values that one query has read. Absurd values are counted instead.
class Readings {
 public:
  struct Value {
    model::Metric metric;
    double value;
    int32_t pid;
  };

  // `raw` above `most` is absurd: uninitialised memory, or the marker that some drivers return instead of an
  // error (all 32 or 64 bits set). `scale` converts NVML's unit to the metric's.
  void Put(model::Metric metric, uint64_t raw, uint64_t most, double scale = 1, int32_t pid = 0) {
    if (raw > most)
      ++absurd_;
    else
      values_.push_back({metric, static_cast<double>(raw) * scale, pid});
  }
  // Likewise of a value that isn't an integer.
  void PutReal(model::Metric metric, double raw, double most, double scale = 1) {
    if (raw >= 0 && raw <= most)
      values_.push_back({metric, raw * scale, 0});
    else
      ++absurd_;
  }
  void CountAbsurd() { ++absurd_; }
  // A part of them could not be read.
  void CountFailed() { ++failed_; }

  std::span<const Value> values() const { return values_; }
  int64_t absurd() const { return absurd_; }
  int64_t failed() const { return failed_; }

 private:
  std::vector<Value> values_;
  int64_t absurd_ = 0;
  int64_t failed_ = 0;
};

enum class Cadence : uint8_t {
  kEveryRound,
  kEverySecond,       // it changes slowly, or the call is expensive
  kEveryFiveSeconds,  // it hardly ever changes; more seldom it would be missing in scrapes
};

struct Query {
  std::string_view name;  // for messages: "… can't be read"
  Cadence cadence;
  bool of_instances;  // runs on MIG instances too, of which the driver reports little
  // FUNCTION_NOT_FOUND when the driver's library lacks the call.
  gpusonde_nvml_result (*read)(const Functions& functions, void* device, DeviceCache& cache,
                               Readings& readings);
};

std::span<const Query> AllQueries();

}  // namespace gpusonde::nvml
