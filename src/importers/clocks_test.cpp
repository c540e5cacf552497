// SPDX-License-Identifier: Apache-2.0
#include "importers/clocks.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

#include "base/testing/temp_folder.h"
#include "model/tables/devices.h"
#include "model/tables/metrics.h"
#include "store/recordings/recording.h"

namespace gpusonde::importers {
namespace {

TEST(Clocks, SamplesAreByTimeAndOfTheDeviceThatAProcessNumbers) {
  Clocks clocks;
  clocks.Add(1, {.time_ns = 300, .mhz = 1'500});
  clocks.Add(1, {.time_ns = 100, .mhz = 1'900});
  clocks.Add(0, {.time_ns = 200, .mhz = 700});
  clocks.Map(1, 4'711, 0);
  const ClockTrack mapped = clocks.TrackOf(4'711, 0);
  ASSERT_EQ(mapped.size(), 2u);
  EXPECT_EQ(mapped[0].time_ns, 100);
  EXPECT_EQ(mapped[1].mhz, 1'500);
  const ClockTrack other = clocks.TrackOf(5, 0);
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].mhz, 700);
  EXPECT_TRUE(clocks.TrackOf(5, 3).empty());
}

TEST(Clocks, OfManySamplesTheLowestClocksAndAllReasonsAreKept) {
  Clocks forwards, backwards;
  constexpr int64_t kSamples = 300'000;
  const auto sample = [](int64_t i) {
    return ClockSample{
        .time_ns = 1'000 * i, .mhz = i == 77'777 ? 300 : 1'900, .reasons = i == 77'778 ? 4u : 0u};
  };
  for (int64_t i = 0; i < kSamples; ++i) {
    forwards.Add(0, sample(i));
    backwards.Add(0, sample(kSamples - 1 - i));
  }
  const ClockTrack kept = forwards.TrackOf(0, 0);
  EXPECT_LE(kept.size(), Clocks::kMaxSamples);
  EXPECT_GT(kept.size(), Clocks::kMaxSamples / 4);
  int64_t low = 0, reasons = 0;
  for (const ClockSample& one : kept) {
    low += one.mhz == 300 ? 1 : 0;
    reasons |= one.reasons;
  }
  EXPECT_EQ(low, 1);
  EXPECT_EQ(reasons, 4);
  const ClockTrack others = backwards.TrackOf(0, 0);
  ASSERT_EQ(others.size(), kept.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(others[i].time_ns, kept[i].time_ns);
    EXPECT_EQ(others[i].mhz, kept[i].mhz);
  }
}

// A made database: no trace that we have holds GPU metrics. Values are in Hz, as a 32-bit number that may be
// negative.
TEST(ReadClocks, TheGpuMetricsOfNsightSystemsAreInHertz) {
  const TempFolder folder;
  const std::string path = folder / "metrics.sqlite";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, R"(
      CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL,
          metricId INTEGER NOT NULL, metricName TEXT NOT NULL);
      INSERT INTO TARGET_INFO_GPU_METRICS VALUES (72057594037927937, 1, 'GPU', 0, 'GPC Clock Frequency [MHz]'),
          (72057594037927937, 1, 'GPU', 1, 'SYS Clock Frequency [MHz]'), (72057594037927936, 1, 'GPU', 0, 'SMs Active');
      CREATE TABLE GPU_METRICS (rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER NOT NULL,
          metricId INTEGER NOT NULL, value INTEGER NOT NULL);
      INSERT INTO GPU_METRICS VALUES (0, 1000, 72057594037927937, 0, 1980000000),
          (0, 2000, 72057594037927937, 0, -1794967296), (0, 3000, 72057594037927937, 0, 1410),
          (0, 4000, 72057594037927937, 0, 'x'), (0, 1500, 72057594037927937, 1, 5000000),
          (0, 1500, 72057594037927936, 0, 98);)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  const auto clocks = ReadClocks(path, TraceFormat::kNsysSqlite, {});
  ASSERT_TRUE(clocks.has_value());
  EXPECT_TRUE(clocks->TrackOf(0, 0).empty());
  const ClockTrack track = clocks->TrackOf(0, 1);
  ASSERT_EQ(track.size(), 3u);
  EXPECT_EQ(track[0].mhz, 1'980);
  EXPECT_EQ(track[1].mhz, 2'500);
  EXPECT_EQ(track[2].mhz, 1'410);
}

// Values as the NVML source writes them: a clock and reasons that hold until the next ones.
TEST(ReadClocks, ARecordingHasClocksAndReasonsByDevice) {
  const TempFolder folder;
  const std::string path = folder / "clocks.sonde";
  const auto id = [](uint64_t number) { return IdHasher("test").Add(number).Finish(); };
  const auto written = store::WriteRecording(path, {}, [&](const store::BatchSink& sink) -> Status {
    model::BatchBuilder devices(model::kDevices);
    for (const int32_t ordinal : {0, 1})
      devices.Append({.device = id(static_cast<uint64_t>(ordinal)),
                      .source = id(9),
                      .ordinal = ordinal,
                      .uuid = "",
                      .name = ""});
    TRY(sink(devices.Take()));
    model::BatchBuilder metrics(model::kMetrics);
    const auto add = [&](int64_t time_ns, uint64_t device, const char* metric, double value) {
      metrics.Append(
          {.time_ns = time_ns, .source = id(9), .device = id(device), .metric = metric, .value = value});
    };
    add(1'000, 1, "gpu.clock.sm", 1'980);
    add(1'000, 1, "gpu.throttle.reasons", 0);
    add(1'000, 1, "gpu.clock.memory", 2'619);
    add(2'000, 1, "gpu.throttle.reasons", 4);
    add(3'000, 1, "gpu.clock.sm", 990);
    add(3'000, 1, "gpu.throttle.reasons", -1);
    return sink(metrics.Take());
  });
  ASSERT_TRUE(written.has_value()) << written.error().message;
  const auto clocks = ReadClocks(path, TraceFormat::kSonde, {});
  ASSERT_TRUE(clocks.has_value()) << clocks.error().message;
  EXPECT_TRUE(clocks->TrackOf(0, 0).empty());
  const ClockTrack track = clocks->TrackOf(0, 1);
  ASSERT_EQ(track.size(), 3u);
  EXPECT_EQ(track[0].mhz, 1'980);
  EXPECT_EQ(track[0].reasons, 0u);
  EXPECT_EQ(track[1].mhz, 1'980);
  EXPECT_EQ(track[1].reasons, 4u);
  EXPECT_EQ(track[2].mhz, 990);
  EXPECT_EQ(track[2].reasons, 4u);
}

TEST(ReadClocks, OtherFormatsHaveNone) {
  const auto clocks = ReadClocks("no such file", TraceFormat::kKinetoJson, {});
  ASSERT_TRUE(clocks.has_value());
  EXPECT_TRUE(clocks->empty());
}

}  // namespace
}  // namespace gpusonde::importers
