// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/counter_questions.h"

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

namespace gpusonde::nvml {
namespace {

using model::Metric;
using CallResult = gpusonde_nvml_result;

constexpr CallResult kFine = GPUSONDE_NVML_SUCCESS;
constexpr uint64_t kMaxCount = uint64_t{1} << 53;  // a double holds every integer up to here

// What a call returns whose parts each have a result: success if any part has a value, else the first error.
class Parts {
 public:
  // Whether the part has a value. One that fails besides others that don't is counted.
  bool Has(CallResult result, Answer& answer) {
    if (result == kFine) {
      known_ = true;
      return true;
    }
    if (!IsUnsupported(result)) answer.CountFailed();
    if (error_ == kFine) error_ = result;
    return false;
  }
  CallResult result() const { return known_ ? kFine : error_; }

 private:
  bool known_ = false;
  CallResult error_ = kFine;
};

// Null: negative, or of no known type.
std::optional<uint64_t> CountOf(const gpusonde_nvml_field& field) {
  switch (field.value_type) {
    case GPUSONDE_NVML_VALUE_UNSIGNED_INT:
      return field.value.unsigned_int;
    case GPUSONDE_NVML_VALUE_UNSIGNED_LONG:
    case GPUSONDE_NVML_VALUE_UNSIGNED_LONG_LONG:
      return field.value.unsigned_long;
    case GPUSONDE_NVML_VALUE_SIGNED_LONG_LONG:
      if (field.value.signed_long < 0) return std::nullopt;
      return static_cast<uint64_t>(field.value.signed_long);
    default:
      return std::nullopt;
  }
}

}  // namespace

gpusonde_nvml_result AskGpm(const Functions& f, void* device, Memory& memory, Answer& answer) {
  struct Asked {
    uint32_t id;
    Metric metric;
    double most;
    double scale;
  };
  // Percentages are ratios of counters that are not read at the same instant.
  constexpr double kMost = 105;
  constexpr double kMebi = 1 << 20;
  constexpr double kMaxMebibytes = 1e8;  // a second
  static constexpr std::array kAsked = {
      Asked{GPUSONDE_NVML_GPM_SM_UTIL, Metric::kGpuSmActive, kMost, 1},
      Asked{GPUSONDE_NVML_GPM_SM_OCCUPANCY, Metric::kGpuSmOccupancy, kMost, 1},
      Asked{GPUSONDE_NVML_GPM_ANY_TENSOR_UTIL, Metric::kGpuTensorActive, kMost, 1},
      Asked{GPUSONDE_NVML_GPM_DFMA_TENSOR_UTIL, Metric::kGpuTensorDfma, kMost, 1},
      Asked{GPUSONDE_NVML_GPM_HMMA_TENSOR_UTIL, Metric::kGpuTensorHmma, kMost, 1},
      Asked{GPUSONDE_NVML_GPM_IMMA_TENSOR_UTIL, Metric::kGpuTensorImma, kMost, 1},
      Asked{GPUSONDE_NVML_GPM_DRAM_BW_UTIL, Metric::kGpuDramActive, kMost, 1},
      Asked{GPUSONDE_NVML_GPM_PCIE_RX_PER_SEC, Metric::kGpuPcieRxMean, kMaxMebibytes, kMebi},
      Asked{GPUSONDE_NVML_GPM_PCIE_TX_PER_SEC, Metric::kGpuPcieTxMean, kMaxMebibytes, kMebi},
      Asked{GPUSONDE_NVML_GPM_NVLINK_TOTAL_RX_PER_SEC, Metric::kGpuNvlinkRx, kMaxMebibytes, kMebi},
      Asked{GPUSONDE_NVML_GPM_NVLINK_TOTAL_TX_PER_SEC, Metric::kGpuNvlinkTx, kMaxMebibytes, kMebi},
  };
  static_assert(kAsked.size() <= GPUSONDE_NVML_GPM_METRICS);
  if (memory.samples == nullptr) {
    std::unique_ptr<GpmSamples> samples;
    const CallResult result =
        memory.mig.has_value() ? GpmSamples::Create(f, memory.mig->parent, memory.mig->gpu_instance, samples)
                               : GpmSamples::Create(f, device, std::nullopt, samples);
    if (result != kFine) return result;
    memory.samples = std::move(samples);
  }
  gpusonde_nvml_gpm_metrics metrics{};
  metrics.count = kAsked.size();
  for (size_t i = 0; i < kAsked.size(); ++i) metrics.metrics[i].metric = kAsked[i].id;
  bool known = false;
  if (const CallResult result = memory.samples->Take(metrics, known); result != kFine || !known)
    return result;
  Parts parts;
  for (size_t i = 0; i < kAsked.size(); ++i) {
    const gpusonde_nvml_gpm_metric& read = metrics.metrics[i];
    // DCGM takes NaN as "no value" as well.
    if (!parts.Has(read.result, answer) || std::isnan(read.value)) continue;
    const Asked& asked = kAsked[i];
    const bool slightly_more = asked.most == kMost && read.value > 100 && read.value <= kMost;
    answer.PutReal(asked.metric, slightly_more ? 100 : read.value, asked.most, asked.scale);
  }
  return parts.result();
}

gpusonde_nvml_result AskNvlink(const Functions& f, void* device, Memory&, Answer& answer) {
  struct Asked {
    uint32_t id;
    uint32_t scope;
    Metric metric;
    uint64_t most;
    double scale;
  };
  constexpr uint64_t kMaxKibibytes = kMaxCount >> 10;
  static constexpr std::array kAsked = {
      Asked{GPUSONDE_NVML_FIELD_NVLINK_DATA_RX, GPUSONDE_NVML_ALL_LINKS, Metric::kGpuNvlinkReceived,
            kMaxKibibytes, 1024},
      Asked{GPUSONDE_NVML_FIELD_NVLINK_DATA_TX, GPUSONDE_NVML_ALL_LINKS, Metric::kGpuNvlinkSent,
            kMaxKibibytes, 1024},
      Asked{GPUSONDE_NVML_FIELD_NVLINK_CRC_FLIT_ERRORS, 0, Metric::kGpuNvlinkCrcFlit, kMaxCount, 1},
      Asked{GPUSONDE_NVML_FIELD_NVLINK_CRC_DATA_ERRORS, 0, Metric::kGpuNvlinkCrcData, kMaxCount, 1},
      Asked{GPUSONDE_NVML_FIELD_NVLINK_REPLAYS, 0, Metric::kGpuNvlinkReplays, kMaxCount, 1},
      Asked{GPUSONDE_NVML_FIELD_NVLINK_RECOVERIES, 0, Metric::kGpuNvlinkRecoveries, kMaxCount, 1},
  };
  if (f.field_values == nullptr) return GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND;
  std::array<gpusonde_nvml_field, kAsked.size()> fields{};
  for (size_t i = 0; i < kAsked.size(); ++i) {
    fields[i].field = kAsked[i].id;
    fields[i].scope = kAsked[i].scope;
    fields[i].result = GPUSONDE_NVML_ERROR_UNKNOWN;
  }
  if (const CallResult result = f.field_values(device, static_cast<int32_t>(fields.size()), fields.data());
      result != kFine)
    return result;
  Parts parts;
  for (size_t i = 0; i < kAsked.size(); ++i) {
    if (!parts.Has(fields[i].result, answer)) continue;
    if (const std::optional<uint64_t> count = CountOf(fields[i]); count.has_value())
      answer.Put(kAsked[i].metric, *count, kAsked[i].most, kAsked[i].scale);
    else
      answer.CountAbsurd();
  }
  return parts.result();
}

gpusonde_nvml_result AskRemappedRows(const Functions& f, void* device, Memory&, Answer& answer) {
  // A bank has a few spare rows, a device thousands of banks.
  constexpr uint64_t kMaxRows = 10'000'000;
  if (f.remapped_rows == nullptr) return GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND;
  uint32_t corrected = UINT32_MAX, uncorrected = UINT32_MAX, pending = UINT32_MAX, failure = UINT32_MAX;
  const CallResult result = f.remapped_rows(device, &corrected, &uncorrected, &pending, &failure);
  if (result != kFine) return result;
  answer.Put(Metric::kGpuRowsCorrected, corrected, kMaxRows);
  answer.Put(Metric::kGpuRowsUncorrected, uncorrected, kMaxRows);
  answer.Put(Metric::kGpuRowsPending, pending, 1);
  answer.Put(Metric::kGpuRowsFailure, failure, 1);
  return kFine;
}

}  // namespace gpusonde::nvml
