// SPDX-License-Identifier: Apache-2.0
#include "exporters/otlp/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <otlp.pb.h>

#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "exporters/testing/gunzip.h"
#include "model/batch.h"
#include "model/tables/devices.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/metrics.h"
#include "model/tables/processes.h"
#include "model/tables/sources.h"

// OpenTelemetry's own decoder reads the same requests in tests/e2e/otlp.
namespace gpusonde::exporters {
namespace {

constexpr Id128 kPushedGpu{7, 7};
constexpr Id128 kPushedProcess{9, 11};
constexpr int64_t kMonotonicNs = 1000 * kNanosPerSecond;
constexpr int64_t kEpochNs = 1'763'687'000 * kNanosPerSecond;

class OtlpMetricsTest : public testing::Test {
 protected:
  OtlpMetricsTest() {
    Add(model::kSources, {{.host = "node-1"}});
    Add(model::kDevices, {{.device = kPushedGpu,
                           .ordinal = 3,
                           .uuid = "GPU-1",
                           .name = "Simulated H100",
                           .simulated = true,
                           .memory_bytes = 1000}});
  }
  template <class Table>
  void Add(const Table& table, std::initializer_list<typename Table::Row> rows) {
    model::BatchBuilder builder(table);
    for (const auto& row : rows) builder.Append(row);
    const std::vector<model::Batch> batches{builder.Take()};
    totals_.Ingest(batches, kMonotonicNs);
  }
  void Read(std::string metric, double value) {
    Add(model::kMetrics, {{.device = kPushedGpu, .metric = std::move(metric), .value = value}});
  }
  // The metrics by name.
  std::map<std::string, otlp::Metric> Metrics(int64_t now_ns = kMonotonicNs) {
    const OtlpMetrics rendered =
        RenderOtlpMetrics(totals_, now_ns, kEpochNs, {.cpu_seconds = 1.5, .started_seconds = 12});
    EXPECT_TRUE(data_.ParseFromString(Gunzip(rendered.request)));
    std::map<std::string, otlp::Metric> metrics;
    int64_t points = 0;
    for (const otlp::Metric& metric : data_.resource_metrics(0).scope_metrics(0).metrics()) {
      EXPECT_TRUE(metrics.emplace(metric.name(), metric).second) << metric.name() << " is there once";
      points += metric.gauge().data_points_size() + metric.sum().data_points_size();
    }
    EXPECT_EQ(points, rendered.data_points);
    return metrics;
  }
  static std::map<std::string, std::string> AttributesOf(const otlp::NumberDataPoint& point) {
    std::map<std::string, std::string> attributes;
    for (const otlp::KeyValue& attribute : point.attributes())
      attributes[attribute.key()] = attribute.value().string_value();
    return attributes;
  }

  prometheus::LiveTotals totals_;
  otlp::MetricsData data_;
};

TEST_F(OtlpMetricsTest, ReadingsHaveTheNamesAndUnitsOfTheConventions) {
  Read("gpu.utilization", 50);
  Read("gpu.memory.used", 250);
  Read("gpu.energy", 12.25);
  Read("gpu.power", 300);
  Read("gpu.temperature", 41);
  Read("gpu.ecc.corrected", 2);
  Read("gpu.ecc.uncorrected", 1);
  Read("gpu.clock.sm", 1980);
  const auto metrics = Metrics();
  const otlp::NumberDataPoint& utilization = metrics.at("hw.gpu.utilization").gauge().data_points(0);
  EXPECT_EQ(utilization.as_double(), 0.5);
  EXPECT_EQ(utilization.time_unix_nano(), static_cast<uint64_t>(kEpochNs));
  EXPECT_THAT(AttributesOf(utilization),
              testing::ElementsAre(testing::Pair("hw.gpu.task", "general"), testing::Pair("hw.id", "GPU-1"),
                                   testing::Pair("hw.model", "Simulated H100"),
                                   testing::Pair("hw.name", "GPU 3"), testing::Pair("hw.type", "gpu")));
  const otlp::Metric& usage = metrics.at("hw.gpu.memory.usage");
  EXPECT_EQ(usage.unit(), "By");
  EXPECT_FALSE(usage.sum().is_monotonic());
  EXPECT_EQ(usage.sum().aggregation_temporality(), otlp::AGGREGATION_TEMPORALITY_CUMULATIVE);
  EXPECT_EQ(usage.sum().data_points(0).as_double(), 250);
  EXPECT_EQ(metrics.at("hw.gpu.memory.limit").sum().data_points(0).as_int(), 1000);
  EXPECT_EQ(metrics.at("hw.gpu.memory.utilization").gauge().data_points(0).as_double(), 0.25);
  const otlp::Metric& energy = metrics.at("hw.energy");
  EXPECT_EQ(energy.unit(), "J");
  EXPECT_TRUE(energy.sum().is_monotonic());
  EXPECT_EQ(energy.sum().data_points(0).as_double(), 12.25);
  EXPECT_EQ(energy.sum().data_points(0).start_time_unix_nano(), 0u)
      << "when the driver was loaded is unknown";
  EXPECT_EQ(metrics.at("hw.power").gauge().data_points(0).as_double(), 300);
  EXPECT_EQ(metrics.at("hw.temperature").unit(), "Cel");
  const otlp::Sum& errors = metrics.at("hw.errors").sum();
  ASSERT_EQ(errors.data_points_size(), 2);
  EXPECT_EQ(AttributesOf(errors.data_points(0)).at("error.type"), "corrected");
  EXPECT_EQ(AttributesOf(errors.data_points(1)).at("error.type"), "uncorrected");
  EXPECT_EQ(metrics.at("gpusonde.gpu.clock.sm").gauge().data_points(0).as_double(), 1980);
  EXPECT_EQ(metrics.at("gpusonde.gpu.clock.sm").unit(), "MHz");
}

TEST_F(OtlpMetricsTest, AReadingDisappearsWhenItIsNotRenewed) {
  Read("gpu.temperature", 41);
  EXPECT_TRUE(Metrics().contains("hw.temperature"));
  EXPECT_FALSE(Metrics(kMonotonicNs + 11 * kNanosPerSecond).contains("hw.temperature"));
}

TEST_F(OtlpMetricsTest, FamiliesOfPrometheusAreSumsAndGaugesWithTheirLabels) {
  Add(model::kProcesses, {{.process = kPushedProcess, .pid = 11, .name = "train"}});
  Add(model::kKernelPacks, {{.process = kPushedProcess,
                             .device = kPushedGpu,
                             .name = "k",
                             .count = 100,
                             .duration_ns = 2 * kNanosPerSecond}});
  totals_.SetPushed("metrics", {.accepted = 30, .dropped = 4});
  const auto metrics = Metrics();
  const otlp::NumberDataPoint& kernels = metrics.at("gpusonde_process_gpu_kernels").sum().data_points(0);
  EXPECT_EQ(kernels.as_int(), 100);
  EXPECT_EQ(kernels.start_time_unix_nano(), 12'000'000'000u);
  EXPECT_EQ(AttributesOf(kernels).at("command"), "train");
  EXPECT_EQ(metrics.at("gpusonde_gpu_kernel_seconds").unit(), "s");
  EXPECT_EQ(metrics.at("process_cpu_seconds").sum().data_points(0).as_double(), 1.5);
  EXPECT_EQ(metrics.at("gpusonde_incidents_open").gauge().data_points(0).as_int(), 0);
  const otlp::Sum& items = metrics.at("gpusonde_otlp_items").sum();
  ASSERT_EQ(items.data_points_size(), 3);
  EXPECT_EQ(AttributesOf(items.data_points(1)).at("outcome"), "dropped");
  EXPECT_EQ(items.data_points(1).as_int(), 4);
}

TEST_F(OtlpMetricsTest, TheResourceIsGpusondeOnItsHost) {
  Metrics();
  std::map<std::string, std::string> resource;
  for (const otlp::KeyValue& attribute : data_.resource_metrics(0).resource().attributes())
    resource[attribute.key()] = attribute.value().string_value();
  EXPECT_EQ(resource.at("service.name"), "gpusonde");
  EXPECT_EQ(resource.at("host.name"), "node-1");
}

}  // namespace
}  // namespace gpusonde::exporters
