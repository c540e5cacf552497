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

// A question is an NVML call to one device, and how its answer becomes metric values.

// The device, the call or a part of it doesn't exist for this caller, and never will.
bool IsUnsupported(gpusonde_nvml_result result);

// A device's state that is kept between calls.
struct Memory {
  std::optional<MigPlace> mig;          // of a MIG instance
  std::unique_ptr<GpmSamples> samples;  // null before the first
  bool plain_memory_info = false;       // its driver lacks nvmlDeviceGetMemoryInfo_v2
  bool process_samples_begun = false;
  uint64_t last_process_sample_us = 0;  // of NVML's own clock
};

// Collects the values of one answer. Absurd values are counted instead.
class Answer {
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
  // A part of the answer could not be read.
  void CountFailed() { ++failed_; }

  std::span<const Value> values() const { return values_; }
  int64_t absurd() const { return absurd_; }
  int64_t failed() const { return failed_; }

 private:
  std::vector<Value> values_;
  int64_t absurd_ = 0;
  int64_t failed_ = 0;
};

enum class Often : uint8_t {
  kEveryRound,
  kEverySecond,       // it changes slowly, or the call is expensive
  kEveryFiveSeconds,  // it hardly ever changes; more seldom it would be missing in scrapes
};

struct Question {
  std::string_view name;  // for messages: "… can't be read"
  Often often;
  bool of_instances;  // asked of MIG instances too; the driver answers few questions about those
  // FUNCTION_NOT_FOUND when the driver's library lacks the call.
  gpusonde_nvml_result (*ask)(const Functions& functions, void* device, Memory& memory, Answer& answer);
};

std::span<const Question> AllQuestions();

}  // namespace gpusonde::nvml
