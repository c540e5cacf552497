// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/counter_queries.h"

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
  bool Has(CallResult result, Readings& readings) {
    if (result == kFine) {
      known_ = true;
      return true;
    }
    if (!IsUnsupported(result)) readings.CountFailed();
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

gpusonde_nvml_result QueryGpm(const Functions& f, void* device, DeviceCache& cache, Readings& readings) {
  struct Counter {
    uint32_t id;
    Metric metric;
    double most;
    double scale;
  };
  // Percentages are ratios of counters that are not read at the same instant.
  constexpr double kMaxPercent = 105;
  constexpr double kMebi = 1 << 20;
  constexpr double kMaxMebibytes = 1e8;  // a second
  static constexpr std::array kCounters = {
      Counter{GPUSONDE_NVML_GPM_SM_UTIL, Metric::kGpuSmActive, kMaxPercent, 1},
      Counter{GPUSONDE_NVML_GPM_SM_OCCUPANCY, Metric::kGpuSmOccupancy, kMaxPercent, 1},
      Counter{GPUSONDE_NVML_GPM_ANY_TENSOR_UTIL, Metric::kGpuTensorActive, kMaxPercent, 1},
      Counter{GPUSONDE_NVML_GPM_DFMA_TENSOR_UTIL, Metric::kGpuTensorDfma, kMaxPercent, 1},
      Counter{GPUSONDE_NVML_GPM_HMMA_TENSOR_UTIL, Metric::kGpuTensorHmma, kMaxPercent, 1},
      Counter{GPUSONDE_NVML_GPM_IMMA_TENSOR_UTIL, Metric::kGpuTensorImma, kMaxPercent, 1},
      Counter{GPUSONDE_NVML_GPM_DRAM_BW_UTIL, Metric::kGpuDramActive, kMaxPercent, 1},
      Counter{GPUSONDE_NVML_GPM_PCIE_RX_PER_SEC, Metric::kGpuPcieRxMean, kMaxMebibytes, kMebi},
      Counter{GPUSONDE_NVML_GPM_PCIE_TX_PER_SEC, Metric::kGpuPcieTxMean, kMaxMebibytes, kMebi},
      Counter{GPUSONDE_NVML_GPM_NVLINK_TOTAL_RX_PER_SEC, Metric::kGpuNvlinkRx, kMaxMebibytes, kMebi},
      Counter{GPUSONDE_NVML_GPM_NVLINK_TOTAL_TX_PER_SEC, Metric::kGpuNvlinkTx, kMaxMebibytes, kMebi},
  };
  static_assert(kCounters.size() <= GPUSONDE_NVML_GPM_METRICS);
  if (cache.samples == nullptr) {
    std::unique_ptr<GpmSamples> samples;
    const CallResult result = cache.mig.has_value()
                                  ? GpmSamples::Create(f, cache.mig->parent, cache.mig->gpu_instance, samples)
                                  : GpmSamples::Create(f, device, std::nullopt, samples);
    if (result != kFine) return result;
    cache.samples = std::move(samples);
  }
  gpusonde_nvml_gpm_metrics metrics{};
  metrics.count = kCounters.size();
  for (size_t i = 0; i < kCounters.size(); ++i) metrics.metrics[i].metric = kCounters[i].id;
  bool known = false;
  if (const CallResult result = cache.samples->Take(metrics, known); result != kFine || !known) return result;
  Parts parts;
  for (size_t i = 0; i < kCounters.size(); ++i) {
    const gpusonde_nvml_gpm_metric& read = metrics.metrics[i];
    // DCGM takes NaN as "no value" as well.
    if (!parts.Has(read.result, readings) || std::isnan(read.value)) continue;
    const Counter& counter = kCounters[i];
    const bool slightly_more = counter.most == kMaxPercent && read.value > 100 && read.value <= kMaxPercent;
    readings.PutReal(counter.metric, slightly_more ? 100 : read.value, counter.most, counter.scale);
  }
  return parts.result();
}

gpusonde_nvml_result QueryNvlink(const Functions& f, void* device, DeviceCache&, Readings& readings) {
  struct Counter {
    uint32_t id;
    uint32_t scope;
    Metric metric;
    uint64_t most;
    double scale;
  };
  constexpr uint64_t kMaxKibibytes = kMaxCount >> 10;
  static constexpr std::array kCounters = {
      Counter{GPUSONDE_NVML_FIELD_NVLINK_DATA_RX, GPUSONDE_NVML_ALL_LINKS, Metric::kGpuNvlinkReceived,
              kMaxKibibytes, 1024},
      Counter{GPUSONDE_NVML_FIELD_NVLINK_DATA_TX, GPUSONDE_NVML_ALL_LINKS, Metric::kGpuNvlinkSent,
              kMaxKibibytes, 1024},
      Counter{GPUSONDE_NVML_FIELD_NVLINK_CRC_FLIT_ERRORS, 0, Metric::kGpuNvlinkCrcFlit, kMaxCount, 1},
      Counter{GPUSONDE_NVML_FIELD_NVLINK_CRC_DATA_ERRORS, 0, Metric::kGpuNvlinkCrcData, kMaxCount, 1},
      Counter{GPUSONDE_NVML_FIELD_NVLINK_REPLAYS, 0, Metric::kGpuNvlinkReplays, kMaxCount, 1},
      Counter{GPUSONDE_NVML_FIELD_NVLINK_RECOVERIES, 0, Metric::kGpuNvlinkRecoveries, kMaxCount, 1},
  };
  if (f.field_values == nullptr) return GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND;
  std::array<gpusonde_nvml_field, kCounters.size()> fields{};
  for (size_t i = 0; i < kCounters.size(); ++i) {
    fields[i].field = kCounters[i].id;
    fields[i].scope = kCounters[i].scope;
    fields[i].result = GPUSONDE_NVML_ERROR_UNKNOWN;
  }
  if (const CallResult result = f.field_values(device, static_cast<int32_t>(fields.size()), fields.data());
      result != kFine)
    return result;
  Parts parts;
  for (size_t i = 0; i < kCounters.size(); ++i) {
    if (!parts.Has(fields[i].result, readings)) continue;
    if (const std::optional<uint64_t> count = CountOf(fields[i]); count.has_value())
      readings.Put(kCounters[i].metric, *count, kCounters[i].most, kCounters[i].scale);
    else
      readings.CountAbsurd();
  }
  return parts.result();
}

gpusonde_nvml_result QueryRemappedRows(const Functions& f, void* device, DeviceCache&, Readings& readings) {
  // A bank has a few spare rows, a device thousands of banks.
  constexpr uint64_t kMaxRows = 10'000'000;
  if (f.remapped_rows == nullptr) return GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND;
  uint32_t corrected = UINT32_MAX, uncorrected = UINT32_MAX, pending = UINT32_MAX, failure = UINT32_MAX;
  const CallResult result = f.remapped_rows(device, &corrected, &uncorrected, &pending, &failure);
  if (result != kFine) return result;
  readings.Put(Metric::kGpuRowsCorrected, corrected, kMaxRows);
  readings.Put(Metric::kGpuRowsUncorrected, uncorrected, kMaxRows);
  readings.Put(Metric::kGpuRowsPending, pending, 1);
  readings.Put(Metric::kGpuRowsFailure, failure, 1);
  return kFine;
}

}  // namespace gpusonde::nvml
