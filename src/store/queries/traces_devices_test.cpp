// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/tables/devices.h"
#include "model/tables/processes.h"
#include "model/tables/sources.h"
#include "store/queries/gpu_query.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using testing::ElementsAre;

// Two traces, each of a process on a GPU 0 of its own.
class DevicesOfTraces : public MemoryStoreTest {
 protected:
  void AddTrace(uint64_t number, const std::string& file, const std::string& process,
                model::SourceKind kind = model::SourceKind::kImport) {
    Add(model::kSources, {{.source = {1, number}, .kind = kind, .command = file}});
    Add(model::kDevices, {{.device = {2, number}, .source = {1, number}, .name = "H100"}});
    Add(model::kProcesses, {{.process = {3, number}, .source = {1, number}, .name = process}});
  }
  std::vector<std::string> Traces() {
    const auto devices = ReadDevices(*store_);
    EXPECT_TRUE(devices.has_value()) << devices.error().message;
    std::vector<std::string> traces;
    if (devices.has_value())
      for (const GpuDevice& device : *devices) traces.push_back(device.trace);
    return traces;
  }
};

TEST_F(DevicesOfTraces, AreToldApartByTheirRanks) {
  AddTrace(1, "a.json", "rank 3 (python)");
  EXPECT_THAT(Traces(), ElementsAre("")) << "one device needs no more than its number";
  AddTrace(2, "b.json", "rank 4 (python)");
  EXPECT_THAT(Traces(), ElementsAre("rank 3", "rank 4"));
  Add(model::kDevices, {{.device = {2, 9}, .source = {1, 2}, .ordinal = 1, .name = "H100"}});
  EXPECT_THAT(Traces(), ElementsAre("rank 3", "rank 4", ""));
}

TEST_F(DevicesOfTraces, OrByTheirFiles) {
  AddTrace(1, "before.json", "rank 0 (python)");
  AddTrace(2, "after.json", "rank 0 (python)");
  EXPECT_THAT(Traces(), ElementsAre("before.json", "after.json"));
}

TEST_F(DevicesOfTraces, WithoutRanksByTheirFiles) {
  AddTrace(1, "before.json", "python");
  AddTrace(2, "after.json", "rank 1 (python)");
  EXPECT_THAT(Traces(), ElementsAre("before.json", "after.json"));
}

TEST_F(DevicesOfTraces, ThoseOfAgentsAreNot) {
  AddTrace(1, "", "python", model::SourceKind::kAgent);
  AddTrace(2, "", "python", model::SourceKind::kAgent);
  EXPECT_THAT(Traces(), ElementsAre("", ""));
}

}  // namespace
}  // namespace gpusonde::store
