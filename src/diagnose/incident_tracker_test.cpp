// SPDX-License-Identifier: Apache-2.0
#include "diagnose/incident_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/explain.h"

namespace gpusonde::diagnose {
namespace {

using testing::HasSubstr;

constexpr int64_t kFirstSlow = 1'800'000'000 * kNanosPerSecond;

struct IncidentTrackerTest : testing::Test {
  // Steps of 30 ms that lose 40 ms in this state.
  static Situation Slow(State state) {
    Situation situation{.onset_ns = kFirstSlow, .slowdown = 70.0 / 30, .signals_known = true};
    situation.before[State::kCpu] = situation.during[State::kCpu] = 30e6;
    situation.during[state] += 40e6;
    return situation;
  }
  const model::Incident& incident() const { return tracker.reports().back().incident; }

  IncidentTracker tracker{{7, 1}, 0};
  const model::Process process{.process = {7, 1}, .pid = 411, .name = "train"};
};

TEST_F(IncidentTrackerTest, AnIncidentIsNewsWhenItsCauseChangesAndWhenItEnds) {
  tracker.Begin(kFirstSlow, kFirstSlow + 100 * kMs, "sync stream");
  EXPECT_FALSE(tracker.Explain(Slow(State::kUnexplained), &process, std::nullopt, kFirstSlow + 100 * kMs));
  EXPECT_EQ(incident().cause, kAbstain);
  EXPECT_EQ(incident().named_ns, std::nullopt);
  EXPECT_FALSE(tracker.Explain(Slow(State::kUnexplained), &process, std::nullopt, kFirstSlow + 200 * kMs));
  EXPECT_TRUE(tracker.Explain(Slow(State::kThrottled), &process, std::nullopt, kFirstSlow + 300 * kMs));
  EXPECT_EQ(incident().cause, "cpu_quota");
  EXPECT_EQ(incident().named_ns, kFirstSlow + 300 * kMs);
  EXPECT_FALSE(tracker.Explain(Slow(State::kThrottled), &process, std::nullopt, kFirstSlow + 400 * kMs));
  EXPECT_EQ(incident().end_ns, std::nullopt);
  EXPECT_EQ(tracker.last_end_ns(), 0);
  EXPECT_TRUE(
      tracker.Explain(Slow(State::kThrottled), &process, kFirstSlow + 500 * kMs, kFirstSlow + 600 * kMs));
  EXPECT_EQ(tracker.last_end_ns(), kFirstSlow + 500 * kMs);
  EXPECT_EQ(incident().seen_ns, kFirstSlow + 100 * kMs);
  EXPECT_EQ(incident().named_ns, kFirstSlow + 300 * kMs);
  EXPECT_EQ(tracker.reports().size(), 1u);
}

TEST_F(IncidentTrackerTest, ThatNoCauseIsKnownIsNewsAfterASecond) {
  const auto explain = [this](State state, int64_t after_ns) {
    return tracker.Explain(Slow(state), &process, std::nullopt, kFirstSlow + after_ns);
  };
  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(State::kUnexplained, 0));
  EXPECT_FALSE(explain(State::kUnexplained, kNanosPerSecond - 1));
  EXPECT_TRUE(explain(State::kUnexplained, kNanosPerSecond));
  EXPECT_FALSE(explain(State::kUnexplained, 2 * kNanosPerSecond)) << "the same as before";
  EXPECT_TRUE(explain(State::kThrottled, 3 * kNanosPerSecond));
  EXPECT_FALSE(explain(State::kUnexplained, 4 * kNanosPerSecond));
  EXPECT_FALSE(explain(State::kThrottled, 4 * kNanosPerSecond + 500 * kMs)) << "the same cause again";
  EXPECT_FALSE(explain(State::kUnexplained, 5 * kNanosPerSecond));
  EXPECT_TRUE(explain(State::kUnexplained, 6 * kNanosPerSecond)) << "the cause is gone";
  EXPECT_EQ(incident().seen_ns, kFirstSlow);
}

TEST_F(IncidentTrackerTest, ASmallSlowdownWithACauseIsNewsOnceItHasCostASecond) {
  const auto explain = [this](int64_t after_ns, bool ended = false) {
    Situation situation = Slow(State::kThrottled);
    situation.slowdown = 1.25;
    const int64_t now_ns = kFirstSlow + after_ns;
    return tracker.Explain(situation, &process, ended ? std::optional(now_ns) : std::nullopt, now_ns);
  };
  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(kNanosPerSecond));
  EXPECT_TRUE(tracker.reports().back().is_notable) << "but not announced";
  EXPECT_FALSE(explain(4 * kNanosPerSecond, true));
  EXPECT_FALSE(incident().withdrawn);
  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(4 * kNanosPerSecond));
  EXPECT_TRUE(explain(6 * kNanosPerSecond));
  EXPECT_TRUE(explain(7 * kNanosPerSecond, true));
}

TEST_F(IncidentTrackerTest, ALittleSlowerForNoReasonIsNoNewsUntilItLasts) {
  constexpr int64_t kMinute = 60 * kNanosPerSecond;
  const auto explain = [this](Situation situation, int64_t after_ns, bool ended = false) {
    situation.slowdown = 1.09;
    const int64_t now_ns = kFirstSlow + after_ns;
    return tracker.Explain(situation, &process, ended ? std::optional(now_ns) : std::nullopt, now_ns);
  };
  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(Slow(State::kUnexplained), 0));
  EXPECT_FALSE(explain(Slow(State::kUnexplained), kMinute - 1, true));
  EXPECT_FALSE(tracker.reports().back().is_notable);

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(Slow(State::kUnexplained), 0));
  EXPECT_TRUE(explain(Slow(State::kUnexplained), kMinute)) << "it lasts";
  EXPECT_FALSE(explain(Slow(State::kUnexplained), kMinute + 1)) << "the same as before";
  EXPECT_TRUE(explain(Slow(State::kUnexplained), 2 * kMinute, true));

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(Slow(State::kThrottled), 0));
  EXPECT_TRUE(tracker.reports().back().is_notable) << "with a likely cause";

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  Situation unlikely = Slow(State::kRunQueue);
  unlikely.during[State::kCpu] += 50e6;
  EXPECT_FALSE(explain(unlikely, 0));
  EXPECT_NE(incident().cause, kAbstain);
  EXPECT_TRUE(explain(unlikely, kMinute)) << "it lasts";

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  Situation hanging = Slow(State::kUnexplained);
  hanging.unfinished = true;
  EXPECT_FALSE(explain(hanging, 0));
  EXPECT_TRUE(explain(hanging, kNanosPerSecond));
}

TEST_F(IncidentTrackerTest, AStepThatIsCutShortByTheProgramsEndWasNone) {
  const auto end_after = [this](State state, int64_t ns) {
    Situation last = Slow(state);
    last.unfinished = true;
    last.unfinished_ns = static_cast<double>(ns);
    last.steps = 1;
    last.silent_ns = ns;
    last.signals[model::Metric::kGpuUtilization] = {50, 0};
    tracker.Begin(kFirstSlow, kFirstSlow, "");
    EXPECT_TRUE(tracker.Explain(last, &process, std::nullopt, kFirstSlow + ns)) << "until then it may be one";
    EXPECT_FALSE(incident().withdrawn);
    tracker.Explain(last, &process, kFirstSlow + ns, kFirstSlow + ns);
    return incident().withdrawn;
  };
  EXPECT_TRUE(end_after(State::kCpu, 4 * kNanosPerSecond));
  EXPECT_EQ(incident().cause, "more_cpu_work");
  EXPECT_FALSE(end_after(State::kCpu, 61 * kNanosPerSecond)) << "a loop for ever, say";
  EXPECT_FALSE(end_after(State::kUnexplained, 6 * kNanosPerSecond));
  EXPECT_EQ(incident().cause, "hang");
}

// The detector finds a small slow-down when a second was slow, after which it may turn out to be chance.
TEST_F(IncidentTrackerTest, ASmallSlowdownWithoutALikelyCauseIsReportedOnceItHasLasted) {
  const auto explain = [this](double slowdown, int64_t after_ns) {
    Situation situation = Slow(State::kUnexplained);
    situation.slowdown = slowdown;
    return tracker.Explain(situation, &process, std::nullopt, kFirstSlow + after_ns);
  };
  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(1.28, kNanosPerSecond / 2));
  EXPECT_FALSE(explain(1.1, 2 * kNanosPerSecond));
  EXPECT_FALSE(explain(1.05, 4 * kNanosPerSecond)) << "it was chance";

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(1.28, 3 * kNanosPerSecond - 1));
  EXPECT_FALSE(tracker.reports().back().is_notable);
  EXPECT_FALSE(explain(1.28, 3 * kNanosPerSecond));
  EXPECT_TRUE(tracker.reports().back().is_notable);
  EXPECT_EQ(incident().seen_ns, kFirstSlow + 3 * kNanosPerSecond) << "not reported before";

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(1.5, kNanosPerSecond / 2));
  EXPECT_EQ(incident().seen_ns, kFirstSlow + kNanosPerSecond / 2) << "large";
  EXPECT_TRUE(explain(1.5, kNanosPerSecond));
}

TEST_F(IncidentTrackerTest, AnIncidentThatIsSmallAtItsEndIsWithdrawn) {
  const auto explain = [this](State state, double slowdown, int64_t after_ns, bool ended) {
    Situation situation = Slow(state);
    situation.slowdown = slowdown;
    const int64_t now_ns = kFirstSlow + after_ns;
    return tracker.Explain(situation, &process, ended ? std::optional(now_ns) : std::nullopt, now_ns);
  };
  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(State::kUnexplained, 1.6, kNanosPerSecond / 2, false));
  EXPECT_TRUE(explain(State::kUnexplained, 1.6, kNanosPerSecond, false)) << "it is large";
  EXPECT_FALSE(incident().withdrawn);
  EXPECT_TRUE(explain(State::kUnexplained, 1.05, 5 * kNanosPerSecond, true)) << "who was told learns it";
  EXPECT_TRUE(incident().withdrawn);

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(State::kUnexplained, 2, 499 * kMs, true));
  EXPECT_TRUE(incident().withdrawn) << "large, but little is lost";
  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_TRUE(explain(State::kUnexplained, 2, 500 * kMs, true));
  EXPECT_FALSE(incident().withdrawn);

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_TRUE(explain(State::kUnexplained, 1.2, 7 * kNanosPerSecond, false));
  EXPECT_TRUE(explain(State::kUnexplained, 1.2, 8 * kNanosPerSecond, true));
  EXPECT_FALSE(incident().withdrawn);

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(State::kThrottled, 1.25, 626 * kMs, false));
  EXPECT_FALSE(explain(State::kThrottled, 1.25, 626 * kMs, true));
  EXPECT_FALSE(incident().withdrawn) << "its cause is likely";

  tracker.Begin(kFirstSlow, kFirstSlow, "");
  EXPECT_FALSE(explain(State::kThrottled, 1.25, 624 * kMs, false));
  EXPECT_FALSE(explain(State::kThrottled, 1.25, 624 * kMs, true));
  EXPECT_TRUE(incident().withdrawn) << "its cause is likely, but hardly anything is lost";

  for (const double slowdown : {1.04, 1.06}) {
    tracker.Begin(kFirstSlow, kFirstSlow, "");
    explain(State::kThrottled, 1.25, 4 * kNanosPerSecond, false);
    explain(State::kThrottled, slowdown, 20 * kNanosPerSecond, true);
    EXPECT_EQ(incident().withdrawn, slowdown < 1.05) << "likely, and it lasted: " << slowdown;
  }
}

TEST_F(IncidentTrackerTest, TheReportNamesTheProcessAndItsEvidenceBelongsToTheIncident) {
  tracker.Begin(kFirstSlow, kFirstSlow, "sync stream");
  tracker.Explain(Slow(State::kThrottled), &process, std::nullopt, kFirstSlow);
  const Report& report = tracker.reports().back();
  EXPECT_EQ(report.process_name, "train");
  EXPECT_EQ(report.pid, 411);
  EXPECT_EQ(report.anchor, "sync stream");
  EXPECT_THAT(report.incident.sentence, HasSubstr("CPU quota"));
  EXPECT_GT(report.evidence.size(), 2u);
  for (const model::Evidence& evidence : report.evidence)
    EXPECT_EQ(evidence.incident, report.incident.incident);
  tracker.Explain(Slow(State::kThrottled), nullptr, std::nullopt, kFirstSlow);
  EXPECT_EQ(report.process_name, "");
}

TEST_F(IncidentTrackerTest, AYoungUnexplainedIncidentIsExplainedMoreOften) {
  tracker.Begin(kFirstSlow, kFirstSlow, "");
  tracker.MarkUpdated(kFirstSlow);
  tracker.Explain(Slow(State::kUnexplained), &process, std::nullopt, kFirstSlow);
  EXPECT_FALSE(tracker.IsUpdateDue(kFirstSlow + 199 * kMs));
  EXPECT_TRUE(tracker.IsUpdateDue(kFirstSlow + 200 * kMs));
  tracker.Explain(Slow(State::kThrottled), &process, std::nullopt, kFirstSlow);
  EXPECT_FALSE(tracker.IsUpdateDue(kFirstSlow + 499 * kMs));
  EXPECT_TRUE(tracker.IsUpdateDue(kFirstSlow + 500 * kMs));
  tracker.Explain(Slow(State::kUnexplained), &process, std::nullopt, kFirstSlow);
  tracker.MarkUpdated(kFirstSlow + 6 * kNanosPerSecond);
  EXPECT_FALSE(tracker.IsUpdateDue(kFirstSlow + 6 * kNanosPerSecond + 499 * kMs)) << "no longer young";
}

TEST_F(IncidentTrackerTest, AnEarlierRunsIncidentIsContinued) {
  const model::Incident earlier{.incident = {5, 5},
                                .process = {7, 1},
                                .start_ns = kFirstSlow + 1900 * kMs,
                                .end_ns = kFirstSlow + kNanosPerSecond * 60,
                                .seen_ns = kFirstSlow + 7 * kMs,
                                .cause = "cpu_quota"};
  tracker.Ingest(earlier);
  tracker.Begin(kFirstSlow, kFirstSlow + 100 * kMs, "");
  EXPECT_EQ(incident().incident, earlier.incident);
  EXPECT_EQ(incident().start_ns, earlier.start_ns);
  EXPECT_EQ(incident().seen_ns, earlier.seen_ns);
  EXPECT_EQ(incident().end_ns, std::nullopt) << "it is open again";
  EXPECT_FALSE(tracker.Explain(Slow(State::kThrottled), &process, std::nullopt, kFirstSlow))
      << "the earlier run reported it";
  tracker.Begin(kFirstSlow + 10 * kNanosPerSecond, kFirstSlow + 10 * kNanosPerSecond, "");
  EXPECT_NE(incident().incident, earlier.incident);
  EXPECT_EQ(incident().start_ns, kFirstSlow + 10 * kNanosPerSecond);
}

TEST_F(IncidentTrackerTest, TheNewestIncidentsAreKept) {
  for (int i = 0; i < 1500; ++i) tracker.Begin(kFirstSlow + i * kNanosPerSecond, kFirstSlow, "");
  EXPECT_EQ(tracker.reports().size(), 1000u);
  EXPECT_EQ(incident().start_ns, kFirstSlow + 1499 * kNanosPerSecond);
}

}  // namespace
}  // namespace gpusonde::diagnose
