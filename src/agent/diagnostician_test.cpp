// SPDX-License-Identifier: Apache-2.0
#include "agent/diagnostician.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/time.h"
#include "diagnose/testing/world.h"
#include "model/batch_rows.h"
#include "model/tables/incidents.h"

namespace gpusonde::agent {
namespace {

// The rows of incidents that a run's last round has, after a previous run left one open.
std::vector<model::Incident> LastIncidents(bool ends_incidents) {
  Diagnostician diagnostician({.source = {9, 9},
                               .epoch_offset_ns = diagnose::kBegin + 9 * kNanosPerSecond - MonotonicNow(),
                               .with_kernel = false,
                               .ends_incidents = ends_incidents});
  diagnostician.Recall([](diagnose::Diagnosis& diagnosis) -> Status {
    diagnose::World world(diagnosis);
    world.Run({}, 150);
    world.Run({.behind_stranger_ns = 40 * kNanosPerMilli}, 60);
    diagnosis.Ingest(model::GpuSession{
        .process = world.workload, .session = 1, .start_ns = diagnose::kBegin, .end_ns = world.now_ns()});
    EXPECT_EQ(diagnosis.Reports().size(), 1u);
    return {};
  });
  std::vector<model::Incident> incidents;
  for (const model::Batch& batch : diagnostician.Finish({}))
    if (batch.table == model::kIncidents.name())
      for (const model::Incident& incident : model::RowsOf(model::kIncidents, batch))
        incidents.push_back(incident);
  return incidents;
}

TEST(Diagnostician, OpenIncidentsEndWithARunThatNoneGoesOnWith) {
  const std::vector<model::Incident> incidents = LastIncidents(true);
  ASSERT_FALSE(incidents.empty());
  EXPECT_TRUE(incidents.back().end_ns.has_value());
}

TEST(Diagnostician, OpenIncidentsStayOpenForTheNextRun) {
  for (const model::Incident& incident : LastIncidents(false)) EXPECT_FALSE(incident.end_ns.has_value());
}

}  // namespace
}  // namespace gpusonde::agent
