// SPDX-License-Identifier: Apache-2.0
#include "exporters/otlp/metrics.h"

#include <fmt/format.h>
#include <otlp.pb.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/gzip.h"
#include "base/utf8.h"
#include "base/version.h"
#include "model/metric_catalogue.h"

namespace gpusonde::exporters {
namespace {

using model::Metric;
using prometheus::Label;
using prometheus::LiveTotals;

enum class Instrument : uint8_t { kGauge, kUpDownCounter, kCounter };

// A reading of NVML that has a name in OpenTelemetry's semantic conventions for hardware
// (https://opentelemetry.io/docs/specs/semconv/hardware: gpu, common, temperature).
struct HardwareMetric {
  Metric metric;
  std::string_view name;
  std::string_view unit;  // UCUM
  Instrument instrument;
  std::string_view meaning;
  double scale = 1;                       // from the catalogue's unit
  std::string_view key = {}, value = {};  // one more attribute; empty: none
};

// Those of one name beside each other.
constexpr std::array kHardwareMetrics = {
    HardwareMetric{Metric::kGpuUtilization, "hw.gpu.utilization", "1", Instrument::kGauge,
                   "Fraction of the driver's last sample period in which a kernel was running.", 0.01,
                   "hw.gpu.task", "general"},
    HardwareMetric{Metric::kGpuMemoryUsed, "hw.gpu.memory.usage", "By", Instrument::kUpDownCounter,
                   "GPU memory used."},
    HardwareMetric{Metric::kGpuEnergy, "hw.energy", "J", Instrument::kCounter,
                   "Energy consumed since the driver was loaded."},
    HardwareMetric{Metric::kGpuPower, "hw.power", "W", Instrument::kGauge,
                   "Power that the whole board draws."},
    HardwareMetric{Metric::kGpuTemperature, "hw.temperature", "Cel", Instrument::kGauge,
                   "Temperature of the chip."},
    HardwareMetric{Metric::kGpuTemperatureSlowdown, "hw.temperature.limit", "Cel", Instrument::kGauge,
                   "Temperature at which the device slows down.", 1, "hw.limit_type", "high.degraded"},
    HardwareMetric{Metric::kGpuEccCorrected, "hw.errors", "{error}", Instrument::kCounter,
                   "Memory errors since the driver was loaded.", 1, "error.type", "corrected"},
    HardwareMetric{Metric::kGpuEccUncorrected, "hw.errors", "{error}", Instrument::kCounter,
                   "Memory errors since the driver was loaded.", 1, "error.type", "uncorrected"},
};

// Readings without such a name; the catalogue's unit in UCUM.
struct OtherReading {
  Metric metric;
  std::string_view unit;
};
constexpr std::array kOtherReadings = {
    OtherReading{Metric::kGpuClockMemory, "MHz"},      OtherReading{Metric::kGpuClockSm, "MHz"},
    OtherReading{Metric::kGpuMemoryUtilization, "%"},  OtherReading{Metric::kGpuPcieGeneration, ""},
    OtherReading{Metric::kGpuPcieReplays, "{packet}"}, OtherReading{Metric::kGpuPcieWidth, "{lane}"},
    OtherReading{Metric::kGpuPowerLimit, "W"},         OtherReading{Metric::kGpuThrottleReasons, ""},
};

constexpr std::string_view kMemoryLimit = "hw.gpu.memory.limit";
constexpr std::string_view kMemoryUtilization = "hw.gpu.memory.utilization";

// The unit in UCUM of a family, which Prometheus' conventions put at the end of its name.
std::string_view UnitOf(std::string_view name) {
  if (name.ends_with("_bytes_per_second")) return "By/s";
  if (name.ends_with("_seconds")) return "s";
  if (name.ends_with("_bytes")) return "By";
  return {};
}

void AddText(otlp::NumberDataPoint& point, std::string_view key, std::string_view text) {
  otlp::KeyValue& attribute = *point.add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_value()->set_string_value(ToUtf8(text));
}

// Collects metrics; series of Prometheus' families among them.
class OtlpMetricWriter : public prometheus::SeriesWriter {
 public:
  OtlpMetricWriter(otlp::ScopeMetrics& out, int64_t epoch_ns, double started_seconds)
      : out_(out),
        time_ns_(static_cast<uint64_t>(epoch_ns)),
        started_ns_(static_cast<uint64_t>(started_seconds * 1e9)) {}

  void Begin(const prometheus::Family& family) override { family_ = &family; }
  void Write(std::span<const Label> common, std::initializer_list<Label> labels, double value) override {
    AddSeries(common, labels).set_as_double(value);
  }
  void Write(std::span<const Label> common, std::initializer_list<Label> labels, int64_t value) override {
    AddSeries(common, labels).set_as_int(value);
  }

  // A new point of the metric, which is the last one added or a new one.
  otlp::NumberDataPoint& AddPoint(std::string_view name, std::string_view unit, Instrument instrument,
                                  std::string_view meaning) {
    if (last_ == nullptr || last_->name() != name) {
      last_ = out_.add_metrics();
      last_->set_name(std::string(name));
      last_->set_unit(std::string(unit));
      last_->set_description(std::string(meaning));
    }
    ++points_;
    otlp::NumberDataPoint* point = nullptr;
    if (instrument == Instrument::kGauge) {
      point = last_->mutable_gauge()->add_data_points();
    } else {
      last_->mutable_sum()->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_CUMULATIVE);
      last_->mutable_sum()->set_is_monotonic(instrument == Instrument::kCounter);
      point = last_->mutable_sum()->add_data_points();
    }
    point->set_time_unix_nano(time_ns_);
    return *point;
  }

  int64_t points() const { return points_; }

 private:
  otlp::NumberDataPoint& AddSeries(std::span<const Label> common, std::initializer_list<Label> labels) {
    std::string_view name = family_->name;
    const bool counter = family_->type == prometheus::Type::kCounter;
    if (counter && name.ends_with("_total")) name.remove_suffix(std::string_view("_total").size());
    otlp::NumberDataPoint& point =
        AddPoint(name, UnitOf(name), counter ? Instrument::kCounter : Instrument::kGauge, family_->help);
    // These counters begin with the program.
    if (counter) point.set_start_time_unix_nano(started_ns_);
    for (const Label& label : common) AddText(point, label.name, label.value);
    for (const Label& label : labels) AddText(point, label.name, label.value);
    return point;
  }

  otlp::ScopeMetrics& out_;
  uint64_t time_ns_;
  uint64_t started_ns_;
  const prometheus::Family* family_ = nullptr;
  otlp::Metric* last_ = nullptr;  // owned by out_
  int64_t points_ = 0;
};

void Describe(otlp::NumberDataPoint& point, const model::Device& device) {
  AddText(point, "hw.id", device.uuid.empty() ? device.device.ToHex() : device.uuid);
  AddText(point, "hw.type", "gpu");
  AddText(point, "hw.name", fmt::format("GPU {}", device.ordinal));
  AddText(point, "hw.model", device.name);
  if (!device.simulated) AddText(point, "hw.vendor", "NVIDIA");  // whose library reads it
}

std::optional<double> ValueOf(const LiveTotals::DeviceReadings& readings, Metric metric) {
  return readings.values[static_cast<size_t>(metric)];
}

void WriteHardware(const std::vector<LiveTotals::DeviceReadings>& devices, OtlpMetricWriter& writer) {
  for (const HardwareMetric& hardware : kHardwareMetrics)
    for (const LiveTotals::DeviceReadings& readings : devices) {
      const std::optional<double> value = ValueOf(readings, hardware.metric);
      if (!value.has_value()) continue;
      otlp::NumberDataPoint& point =
          writer.AddPoint(hardware.name, hardware.unit, hardware.instrument, hardware.meaning);
      Describe(point, readings.device);
      if (!hardware.key.empty()) AddText(point, hardware.key, hardware.value);
      point.set_as_double(*value * hardware.scale);
    }
  for (const LiveTotals::DeviceReadings& readings : devices) {
    const std::optional<int64_t> limit = readings.device.memory_bytes;
    if (!limit.has_value()) continue;
    otlp::NumberDataPoint& point =
        writer.AddPoint(kMemoryLimit, "By", Instrument::kUpDownCounter, "Size of the GPU memory.");
    Describe(point, readings.device);
    point.set_as_int(*limit);
  }
  for (const LiveTotals::DeviceReadings& readings : devices) {
    const std::optional<double> used = ValueOf(readings, Metric::kGpuMemoryUsed);
    const int64_t limit = readings.device.memory_bytes.value_or(0);
    if (!used.has_value() || limit <= 0) continue;
    otlp::NumberDataPoint& point =
        writer.AddPoint(kMemoryUtilization, "1", Instrument::kGauge, "Fraction of GPU memory used.");
    Describe(point, readings.device);
    point.set_as_double(*used / static_cast<double>(limit));
  }
  for (const OtherReading& other : kOtherReadings)
    for (const LiveTotals::DeviceReadings& readings : devices) {
      const std::optional<double> value = ValueOf(readings, other.metric);
      if (!value.has_value()) continue;
      const model::MetricInfo& info = InfoOf(other.metric);
      otlp::NumberDataPoint& point = writer.AddPoint(
          fmt::format("gpusonde.{}", info.name), other.unit,
          info.kind == model::MetricKind::kCounter ? Instrument::kCounter : Instrument::kGauge, info.meaning);
      Describe(point, readings.device);
      point.set_as_double(*value);
    }
}

}  // namespace

OtlpMetrics RenderOtlpMetrics(const LiveTotals& totals, int64_t now_ns, int64_t epoch_ns,
                              const prometheus::OwnUse& own) {
  otlp::MetricsData data;
  otlp::ResourceMetrics& of_resource = *data.add_resource_metrics();
  const std::string host = totals.host();
  for (const auto& [key, text] : {std::pair<std::string_view, std::string_view>("service.name", "gpusonde"),
                                  std::pair<std::string_view, std::string_view>("service.version", kVersion),
                                  std::pair<std::string_view, std::string_view>("host.name", host)}) {
    if (text.empty()) continue;
    otlp::KeyValue& attribute = *of_resource.mutable_resource()->add_attributes();
    attribute.set_key(std::string(key));
    attribute.mutable_value()->set_string_value(ToUtf8(text));
  }
  otlp::ScopeMetrics& scope = *of_resource.add_scope_metrics();
  scope.mutable_scope()->set_name("gpusonde");
  scope.mutable_scope()->set_version(std::string(kVersion));
  OtlpMetricWriter writer(scope, epoch_ns, own.started_seconds);
  WriteHardware(totals.CurrentReadings(now_ns), writer);
  totals.WriteOwnFamilies(writer, now_ns, own);
  return OtlpMetrics{.request = Gzip(data.SerializeAsString(), kGzipNormal), .data_points = writer.points()};
}

}  // namespace gpusonde::exporters
