// SPDX-License-Identifier: Apache-2.0
#include "store/queries/metric_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/tables/devices.h"
#include "model/tables/metrics.h"
#include "model/tables/sources.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using model::Metric;
using model::Selection;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

constexpr Id128 kMetricGpu0{6, 0}, kMetricGpu1{6, 1}, kStranger{6, 9};
constexpr double kPowerCap = 4, kHeat = 0x20, kIdle = 1;

// Ten seconds; each test puts readings there.
class MetricQuery : public MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    AddSource(10 * kSecond);
    Add(model::kDevices, {{.device = kMetricGpu1, .ordinal = 1, .uuid = "GPU-1", .name = "X"},
                          {.device = kMetricGpu0,
                           .ordinal = 0,
                           .uuid = "GPU-0",
                           .name = "X",
                           .simulated = true,
                           .memory_bytes = 80}});
  }
  void AddSource(int64_t ended_ns) {
    Add(model::kSources, {{.source = {9, 9}, .host = "here", .started_ns = 0, .ended_ns = ended_ns}});
  }
  static model::MetricValue Value(Metric metric, int64_t time_ns, double value, Id128 device = kMetricGpu0,
                                  std::optional<Id128> process = std::nullopt) {
    return {.time_ns = time_ns,
            .source = {9, 9},
            .device = device,
            .process = process,
            .metric = std::string(model::InfoOf(metric).name),
            .value = value};
  }
  std::vector<MetricStrip> Strips(int buckets, const Selection& selection = {}) {
    auto strips = ReadMetricStrips(*store_, selection, buckets);
    EXPECT_TRUE(strips.has_value()) << strips.error().message;
    return std::move(strips).value_or(std::vector<MetricStrip>());
  }
  DeviceMarks Marks(int buckets = 100, const Selection& selection = {}) {
    auto marks = ReadDeviceMarks(*store_, selection, buckets);
    EXPECT_TRUE(marks.has_value()) << marks.error().message;
    return std::move(marks).value_or(DeviceMarks());
  }
};

TEST_F(MetricQuery, AReadingStandsUntilTheNext) {
  // 100 W for 1 s, 300 W for 0.5 s, 200 W for 2.5 s; then nobody read it.
  Add(model::kMetrics, {Value(Metric::kGpuPower, kSecond, 100), Value(Metric::kGpuPower, 2 * kSecond, 300),
                        Value(Metric::kGpuPower, 2 * kSecond + kSecond / 2, 200)});
  const auto strips = Strips(10);
  ASSERT_THAT(strips, SizeIs(1));
  EXPECT_EQ(strips[0].metric, Metric::kGpuPower);
  EXPECT_EQ(strips[0].device.device, kMetricGpu0);
  EXPECT_TRUE(strips[0].device.simulated);
  const auto none = testing::Eq(std::nullopt);
  EXPECT_THAT(strips[0].strip.values,
              ElementsAre(none, Optional(100), Optional(DoubleNear(250, 1e-9)), Optional(200), Optional(200),
                          none, none, none, none, none));
  EXPECT_EQ(strips[0].strip.from_ns, 0);
  EXPECT_EQ(strips[0].strip.to_ns, 10 * kSecond);
}

TEST_F(MetricQuery, ABucketShorterThanAReadingHasItsValue) {
  Add(model::kMetrics,
      {Value(Metric::kGpuClockSm, kSecond, 1980), Value(Metric::kGpuClockSm, 2 * kSecond, 345)});
  const auto strips = Strips(4, {.from_ns = kSecond + 900'000'000, .to_ns = 2 * kSecond + 100'000'000});
  ASSERT_THAT(strips, SizeIs(1));
  EXPECT_THAT(strips[0].strip.values,
              ElementsAre(Optional(1980), Optional(1980), Optional(345), Optional(345)));
}

TEST_F(MetricQuery, LongBucketsHaveTheMeanOfTheirReadings) {
  AddSource(100'000 * kSecond);
  std::vector<model::MetricValue> values;
  for (int64_t second = 0; second < 100'000; second += 10)
    values.push_back(Value(Metric::kGpuPower, second * kSecond,
                           second < 50'000    ? 100
                           : second % 20 == 0 ? 200
                                              : 400));
  Add(model::kMetrics, values);
  const auto strips = Strips(4);
  ASSERT_THAT(strips, SizeIs(1));
  EXPECT_THAT(strips[0].strip.values,
              ElementsAre(Optional(100), Optional(100), Optional(300), Optional(300)));
}

TEST_F(MetricQuery, MeansAreByDeviceAndMetric) {
  Add(model::kMetrics,
      {Value(Metric::kGpuSmActive, kSecond, 20), Value(Metric::kGpuSmActive, 2 * kSecond, 60),
       Value(Metric::kGpuTensorActive, kSecond, 5), Value(Metric::kGpuSmActive, kSecond, 90, kMetricGpu1),
       Value(Metric::kGpuPower, kSecond, 300)});
  constexpr std::array kMetrics = {Metric::kGpuSmActive, Metric::kGpuTensorActive};
  const auto means = ReadMetricMeans(*store_, {}, kMetrics);
  ASSERT_TRUE(means.has_value()) << means.error().message;
  ASSERT_THAT(*means, SizeIs(3));
  EXPECT_EQ((*means)[0].device, kMetricGpu0);
  EXPECT_EQ((*means)[0].metric, Metric::kGpuSmActive);
  EXPECT_EQ((*means)[0].mean, 40);
  EXPECT_EQ((*means)[1].metric, Metric::kGpuTensorActive);
  EXPECT_EQ((*means)[2].mean, 90);
  const auto later = ReadMetricMeans(*store_, {.from_ns = 2 * kSecond, .device = kMetricGpu0}, kMetrics);
  ASSERT_THAT(*later, SizeIs(1));
  EXPECT_EQ((*later)[0].mean, 60);
}

TEST_F(MetricQuery, ActivityFollowsUtilizationOnAScaleTo100) {
  Add(model::kMetrics,
      {Value(Metric::kGpuDramActive, kSecond, 3), Value(Metric::kGpuSmActive, kSecond, 1),
       Value(Metric::kGpuTensorActive, kSecond, 2), Value(Metric::kGpuUtilization, kSecond, 100)});
  const auto strips = Strips(1);
  ASSERT_THAT(strips, SizeIs(4));
  EXPECT_EQ(strips[0].metric, Metric::kGpuUtilization);
  EXPECT_EQ(strips[1].metric, Metric::kGpuSmActive);
  EXPECT_EQ(strips[2].metric, Metric::kGpuTensorActive);
  EXPECT_EQ(strips[3].metric, Metric::kGpuDramActive);
  for (const MetricStrip& strip : strips) EXPECT_THAT(strip.most, Optional(100));
}

TEST_F(MetricQuery, StripsAreByDeviceAndInOneOrder) {
  Add(model::kMetrics,
      {Value(Metric::kGpuPower, kSecond, 1, kStranger), Value(Metric::kGpuPower, kSecond, 1, kMetricGpu1),
       Value(Metric::kGpuPower, kSecond, 1), Value(Metric::kGpuMemoryUsed, kSecond, 8),
       Value(Metric::kGpuPowerLimit, kSecond, 700), Value(Metric::kGpuPowerLimit, 2 * kSecond, 300),
       Value(Metric::kGpuThrottleReasons, kSecond, kIdle),
       Value(Metric::kGpuProcessMemoryUsed, kSecond, 8, kMetricGpu0, Id128{5, 5})});
  std::vector<std::pair<Id128, Metric>> order;
  for (const MetricStrip& strip : Strips(10)) order.emplace_back(strip.device.device, strip.metric);
  EXPECT_THAT(
      order, ElementsAre(std::pair(kMetricGpu0, Metric::kGpuMemoryUsed),
                         std::pair(kMetricGpu0, Metric::kGpuThrottleReasons),
                         std::pair(kMetricGpu0, Metric::kGpuPower), std::pair(kMetricGpu1, Metric::kGpuPower),
                         std::pair(kStranger, Metric::kGpuPower)));
  const auto strips = Strips(10);
  EXPECT_THAT(strips[0].most, Optional(80)) << "the device's memory";
  EXPECT_THAT(strips[1].most, Optional(1));
  EXPECT_THAT(strips[2].most, Optional(700)) << "the greatest power limit";
  EXPECT_EQ(strips[3].most, std::nullopt);
  EXPECT_THAT(Strips(10, {.device = kMetricGpu1}), SizeIs(1));
}

TEST_F(MetricQuery, ThrottlingIsAShareOfTime) {
  Add(model::kMetrics,
      {Value(Metric::kGpuThrottleReasons, 0, kIdle), Value(Metric::kGpuThrottleReasons, kSecond, kPowerCap),
       Value(Metric::kGpuThrottleReasons, kSecond + kSecond / 4, 0),
       Value(Metric::kGpuThrottleReasons, 2 * kSecond, kHeat + kIdle)});
  const auto strips = Strips(10);
  ASSERT_THAT(strips, SizeIs(1));
  EXPECT_THAT(strips[0].strip.values[0], Optional(0));
  EXPECT_THAT(strips[0].strip.values[1], Optional(0.25));
  EXPECT_THAT(strips[0].strip.values[2], Optional(1));
}

TEST_F(MetricQuery, XidsAreMarksWithTheirCode) {
  Add(model::kMetrics,
      {Value(Metric::kGpuXid, 3 * kSecond, 79, kMetricGpu1), Value(Metric::kGpuXid, kSecond, 48)});
  const DeviceMarks read = Marks();
  ASSERT_THAT(read.marks, SizeIs(2));
  EXPECT_EQ(read.marks[0].kind, DeviceMark::Kind::kXid);
  EXPECT_EQ(read.marks[0].code, 48);
  EXPECT_EQ(read.marks[0].from_ns, kSecond);
  EXPECT_EQ(read.marks[1].code, 79);
  EXPECT_EQ(read.marks[1].device.ordinal, 1);
  EXPECT_THAT(Marks(100, {.from_ns = 2 * kSecond, .to_ns = 10 * kSecond}).marks, SizeIs(1));
  EXPECT_THAT(Marks(100, {.device = kMetricGpu0}).marks, SizeIs(1));
}

TEST_F(MetricQuery, ThrottlingForOneReasonIsOneMark) {
  std::vector<model::MetricValue> values;
  const auto put = [&](int from_tenth, int to_tenth, double bits) {
    for (int tenth = from_tenth; tenth < to_tenth; ++tenth)
      values.push_back(Value(Metric::kGpuThrottleReasons, tenth * kSecond / 10, bits));
  };
  put(0, 10, kIdle);
  put(10, 20, kPowerCap);
  put(20, 21, 0);
  put(21, 30, kPowerCap);
  put(30, 40, kPowerCap + kHeat);
  put(40, 41, kIdle);
  Add(model::kMetrics, values);
  const auto spans = [](const DeviceMarks& read) {
    std::vector<std::tuple<int64_t, int64_t, int64_t>> all;
    for (const DeviceMark& mark : read.marks)
      all.emplace_back(mark.from_ns * 10 / kSecond, mark.to_ns * 10 / kSecond, mark.code);
    return all;
  };
  using Span = std::tuple<int64_t, int64_t, int64_t>;
  EXPECT_THAT(spans(Marks(1000)), ElementsAre(Span(10, 20, 4), Span(21, 30, 4), Span(30, 40, 0x24)));
  EXPECT_THAT(spans(Marks(20)), ElementsAre(Span(10, 30, 4), Span(30, 40, 0x24))) << "gaps within a bucket";
  EXPECT_THAT(spans(Marks(1000, {.from_ns = kSecond * 15 / 10, .to_ns = kSecond * 25 / 10})),
              ElementsAre(Span(15, 20, 4), Span(21, 25, 4)));
}

TEST_F(MetricQuery, TooManyMarksAreCounted) {
  std::vector<model::MetricValue> values;
  for (int i = 0; i < 2'400; ++i)
    values.push_back(Value(Metric::kGpuThrottleReasons, i * kSecond / 400, i % 2 == 0 ? kPowerCap : 0));
  values.push_back(Value(Metric::kGpuXid, 9 * kSecond, 79));
  Add(model::kMetrics, values);
  const DeviceMarks read = Marks(2000'00);
  EXPECT_EQ(read.marks.size(), static_cast<size_t>(kMaxMarks));
  EXPECT_EQ(read.omitted, 1'200 + 1 - kMaxMarks);
  EXPECT_EQ(read.marks.back().kind, DeviceMark::Kind::kXid) << "an XID is never left out for them";
  values.clear();
  for (int i = 0; i < 1'100; ++i) values.push_back(Value(Metric::kGpuXid, i * kSecond / 400, 31));
  Add(model::kMetrics, values);
  const DeviceMarks more = Marks(2000'00);
  EXPECT_EQ(std::ssize(more.marks), kMaxMarks);
  EXPECT_EQ(more.omitted, 1'200 + 1 + 1'100 - kMaxMarks);
  EXPECT_GT(more.marks.front().from_ns, 0) << "the oldest";
}

TEST_F(MetricQuery, AHostileFileIsHarmless) {
  AddSource(std::numeric_limits<int64_t>::max());
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<model::MetricValue> values;
  for (const Metric metric : {Metric::kGpuPower, Metric::kGpuThrottleReasons, Metric::kGpuXid})
    for (const double value : {kInfinite, -kInfinite, kNan, -1.0, 1e300, 0.5})
      for (const int64_t time_ns :
           {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{-1}, kSecond})
        values.push_back(Value(metric, time_ns, value));
  Add(model::kMetrics, values);
  Strips(100);
  Marks();
  Strips(100, {.from_ns = 0, .to_ns = 10 * kSecond});
  for (const DeviceMark& mark : Marks(100, {.from_ns = 0, .to_ns = 10 * kSecond}).marks)
    EXPECT_GE(mark.code, 0);
}

TEST_F(MetricQuery, WithoutReadingsThereIsNothing) {
  EXPECT_THAT(Strips(10), IsEmpty());
  EXPECT_THAT(Marks().marks, IsEmpty());
  EXPECT_FALSE(ReadMetricStrips(*store_, {}, 0).has_value());
  EXPECT_FALSE(ReadDeviceMarks(*store_, {}, 0).has_value());
}

}  // namespace
}  // namespace gpusonde::store
