// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/metric_catalogue.h"
#include "sources/nvml/library.h"

namespace gpusonde::nvml {

// What one device is asked: a call to NVML, and what its answer means.

// What has to be remembered of a device between two calls.
struct Memory {
  bool plain_memory_info = false;  // its driver doesn't know nvmlDeviceGetMemoryInfo_v2
  bool process_samples_begun = false;
  uint64_t last_process_sample_us = 0;  // of NVML's own clock
};

// Takes the values of one answer. What can't be true never becomes a value.
class Answer {
 public:
  struct Value {
    model::Metric metric;
    double value;
    int32_t pid;
  };

  // `raw` of more than `most` is absurd: memory that nobody wrote, or the marks that some drivers give
  // instead of an error (0xFFFFFFFF, all bits of 64). One in NVML's unit is `scale` in the metric's.
  void Put(model::Metric metric, uint64_t raw, uint64_t most, double scale = 1, int32_t pid = 0) {
    if (raw > most)
      ++absurd_;
    else
      values_.push_back({metric, static_cast<double>(raw) * scale, pid});
  }
  void CountAbsurd() { ++absurd_; }

  std::span<const Value> values() const { return values_; }
  int64_t absurd() const { return absurd_; }

 private:
  std::vector<Value> values_;
  int64_t absurd_ = 0;
};

struct Question {
  std::string_view name;  // for messages: "… can't be read"
  bool every_round;       // else once a second: it changes slowly, or the call is dear
  // FUNCTION_NOT_FOUND when the driver's library lacks the call.
  gpusonde_nvml_result (*ask)(const Functions& functions, void* device, Memory& memory, Answer& answer);
};

std::span<const Question> AllQuestions();

}  // namespace gpusonde::nvml
