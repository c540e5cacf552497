// SPDX-License-Identifier: Apache-2.0
#include "diagnose/forewarner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/time.h"
#include "diagnose/testing/times.h"

namespace gpusonde::diagnose {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kLimit = 87;

class ForewarnerTest : public testing::Test {
 protected:
  void Read(std::string_view metric, double value) {
    host_.Ingest(model::MetricValue{
        .time_ns = now_ns_, .device = device_, .metric = std::string(metric), .value = value});
  }
  void Press(std::string_view metric, double share) {
    host_.Ingest(model::Signal{.start_ns = now_ns_ - kNanosPerSecond,
                               .bucket_ns = kNanosPerSecond,
                               .metric = std::string(metric),
                               .values = {static_cast<int64_t>(share * 1e9)}});
  }
  // Advances by a second.
  void Tick() {
    now_ns_ += kNanosPerSecond;
    for (const model::Warning& warning : forewarner_.Advance(
             host_, open_, now_ns_, [&](const model::Warning& raised) { warned_.push_back(raised); }))
      rows_.push_back(warning);
  }
  // Warms a device from 50 °C towards an equilibrium, in readings of whole degrees, until the first warning
  // or for ten minutes. Returns the temperature then.
  double Warm(double equilibrium, double tau_s) {
    double temperature = 50;
    for (int second = 0; second < 600 && warned_.empty(); ++second) {
      temperature = equilibrium - (equilibrium - 50) * std::exp(-second / tau_s);
      Read("gpu.temperature.slowdown", kLimit);
      Read("gpu.throttle.reasons", 0);
      Read("gpu.temperature", std::round(temperature));
      Tick();
    }
    return temperature;
  }

  HostTimeline host_;
  Forewarner forewarner_;
  std::set<CauseId> open_;
  std::vector<model::Warning> warned_, rows_;
  Id128 device_{2, 1};
  int64_t now_ns_ = kBegin;
};

TEST_F(ForewarnerTest, WarnsBeforeADeviceGetsTooWarm) {
  const double temperature = Warm(100, 60);
  ASSERT_EQ(warned_.size(), 1u);
  EXPECT_EQ(warned_[0].indicator, "temperature");
  EXPECT_EQ(warned_[0].device, device_);
  EXPECT_EQ(warned_[0].most, kLimit);
  EXPECT_LT(temperature, kLimit - 5);
  // It reaches the limit when 100 − 50·e^(−t/60) is 87.
  const double when_s = -60 * std::log((100.0 - kLimit) / 50);
  EXPECT_NEAR(static_cast<double>(*warned_[0].expected_ns - kBegin) / 1e9, when_s, 25);
  EXPECT_THAT(warned_[0].sentence, HasSubstr("87 °C"));
}

TEST_F(ForewarnerTest, DoesNotWarnOfADeviceThatWillStayCoolEnough) {
  Warm(80, 60);
  EXPECT_THAT(warned_, IsEmpty());
}

// At the begin of a load the temperature rises fastest, towards 58 °C; nothing tells yet where it ends.
TEST_F(ForewarnerTest, DoesNotWarnOfADeviceThatHasJustGotWork) {
  for (int second = 0; second < 60; ++second) {
    Read("gpu.temperature.slowdown", kLimit);
    Read("gpu.throttle.reasons", 0);
    Read("gpu.temperature", 36);
    Tick();
  }
  for (int second = 0; second < 300; ++second) {
    Read("gpu.temperature.slowdown", kLimit);
    Read("gpu.throttle.reasons", 0);
    Read("gpu.temperature", std::round(58 - 22 * std::exp(-second / 60.0)));
    Tick();
  }
  EXPECT_THAT(warned_, IsEmpty());
}

TEST_F(ForewarnerTest, DoesNotWarnWithoutALimit) {
  for (int second = 0; second < 60; ++second) {
    Read("gpu.temperature", 50 + second);
    Tick();
  }
  EXPECT_THAT(warned_, IsEmpty());
}

TEST_F(ForewarnerTest, WarnsWhenPowerComesNearItsLimit) {
  const auto run = [&](double watts, int seconds) {
    for (int second = 0; second < seconds; ++second) {
      Read("gpu.power.limit", 700);
      Read("gpu.power", watts);
      Tick();
    }
  };
  run(500, 60);
  EXPECT_THAT(warned_, IsEmpty());
  run(690, 6);
  ASSERT_EQ(warned_.size(), 1u);
  EXPECT_EQ(warned_[0].indicator, "power");
}

TEST_F(ForewarnerTest, DoesNotWarnWhenPowerIsAlwaysNearItsLimit) {
  for (int second = 0; second < 200; ++second) {
    Read("gpu.power.limit", 700);
    Read("gpu.power", 690);
    Tick();
  }
  EXPECT_THAT(warned_, IsEmpty());
}

TEST_F(ForewarnerTest, WarnsOnceOfGrowingErrorsUntilTheyStop) {
  double replays = 0;
  const auto run = [&](double each, int seconds) {
    for (int second = 0; second < seconds; ++second) {
      Read("gpu.pcie.replays", replays += each);
      Tick();
    }
  };
  run(0.1, 200);
  EXPECT_THAT(warned_, IsEmpty());
  run(5, 40);
  ASSERT_EQ(warned_.size(), 1u);
  EXPECT_EQ(warned_[0].indicator, "pcie_replays");
  EXPECT_EQ(rows_.size(), 1u);
  run(0, 100);
  EXPECT_EQ(warned_.size(), 1u);
  ASSERT_EQ(rows_.size(), 2u);
  EXPECT_EQ(rows_[1].warning, warned_[0].warning);
  EXPECT_GT(*rows_[1].end_ns, warned_[0].start_ns);
}

TEST_F(ForewarnerTest, WarnsOfRisingPressureUnlessAnOpenIncidentReportsIt) {
  const auto run = [&](double share, int seconds) {
    for (int second = 0; second < seconds; ++second) {
      Press("host.pressure.memory", share);
      Tick();
    }
  };
  run(0.02, 60);
  EXPECT_THAT(warned_, IsEmpty());
  open_ = {CauseId::kMemoryPressure};
  run(0.5, 8);
  EXPECT_THAT(warned_, IsEmpty());
  open_.clear();
  run(0.6, 1);
  ASSERT_EQ(warned_.size(), 1u);
  EXPECT_EQ(warned_[0].indicator, "memory_pressure");
  EXPECT_FALSE(warned_[0].device.has_value());
}

TEST_F(ForewarnerTest, EndsWhatIsOpenWhenItIsAbandoned) {
  for (int second = 0; second < 68; ++second) {
    Press("host.pressure.memory", second < 60 ? 0.02 : 0.6);
    Tick();
  }
  ASSERT_EQ(warned_.size(), 1u);
  const std::vector<model::Warning> ended = forewarner_.Abandon();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].warning, warned_[0].warning);
  EXPECT_EQ(ended[0].end_ns, now_ns_);
  EXPECT_THAT(forewarner_.Abandon(), IsEmpty());
}

TEST_F(ForewarnerTest, LinksAWarningToTheIncidentThatFollows) {
  Warm(100, 60);
  ASSERT_EQ(warned_.size(), 1u);
  model::Incident incident{
      .incident = {9, 9}, .start_ns = warned_[0].start_ns + 20 * kNanosPerSecond, .cause = "gpu_clocks"};
  EXPECT_THAT(forewarner_.Ingest(incident, {Id128{2, 2}}), IsEmpty()) << "of another device";
  incident.cause = "cpu_contention";
  EXPECT_THAT(forewarner_.Ingest(incident, {device_}), IsEmpty()) << "of another cause";
  incident.cause = "gpu_clocks";
  const auto changed = forewarner_.Ingest(incident, {device_});
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].incident, incident.incident);
  EXPECT_EQ(changed[0].lead_ns, 20 * kNanosPerSecond);
  incident.incident = {9, 10};
  EXPECT_THAT(forewarner_.Ingest(incident, {device_}), IsEmpty()) << "the first one counts";
}

TEST_F(ForewarnerTest, DoesNotLinkAWarningToAMuchLaterIncident) {
  Warm(100, 60);
  ASSERT_EQ(warned_.size(), 1u);
  const model::Incident incident{
      .incident = {9, 9}, .start_ns = warned_[0].start_ns + 301 * kNanosPerSecond, .cause = "gpu_clocks"};
  EXPECT_THAT(forewarner_.Ingest(incident, {device_}), IsEmpty());
}

}  // namespace
}  // namespace gpusonde::diagnose
