// SPDX-License-Identifier: Apache-2.0
#include "agent/pod_device_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/batch_rows.h"

namespace gpusonde::agent {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

pods::PodDevice Worker(std::string id) {
  return {.pod_namespace = "ml",
          .pod = "train-7",
          .container = "worker",
          .resource = "nvidia.com/gpu",
          .id = std::move(id)};
}

class PodDeviceRowsTest : public testing::Test {
 protected:
  void SetUp() override { rows_.SetSource({9, 9}, 1000); }
  void Update(std::vector<pods::PodDevice> devices, int64_t time_ns) {
    rows_.Update({.devices = std::move(devices), .omitted = 0}, time_ns);
  }
  std::vector<model::PodDevice> Rows() {
    const std::optional<model::Batch> batch = rows_.DrainRows();
    if (!batch.has_value()) return {};
    const auto rows = model::RowsOf(model::kPodDevices, *batch);
    return {rows.begin(), rows.end()};
  }

  std::shared_ptr<DeviceTable> devices_ = std::make_shared<DeviceTable>();
  PodDeviceRows rows_{devices_};
};

TEST_F(PodDeviceRowsTest, AnAllocationHasARowAtItsBeginAndAtItsEnd) {
  Update({Worker("GPU-a::1")}, 5);
  const auto begun = Rows();
  ASSERT_THAT(begun, SizeIs(1));
  EXPECT_EQ(begun[0].source, (Id128{9, 9}));
  EXPECT_EQ(begun[0].device, DeviceIdOf("GPU-a"));
  EXPECT_EQ(begun[0].device_name, "GPU-a::1");
  EXPECT_EQ(begun[0].pod, "train-7");
  EXPECT_EQ(begun[0].start_ns, 1005);
  EXPECT_EQ(begun[0].end_ns, std::nullopt);
  Update({Worker("GPU-a::1")}, 10);
  EXPECT_THAT(Rows(), IsEmpty()) << "nothing has changed";
  Update({}, 20);
  const auto ended = Rows();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].allocation, begun[0].allocation);
  EXPECT_EQ(ended[0].end_ns, 1020);
  Update({Worker("GPU-a::1")}, 30);
  const auto again = Rows();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_NE(again[0].allocation, begun[0].allocation);
}

TEST_F(PodDeviceRowsTest, ANewStoreGetsWhatIsAllocated) {
  Update({Worker("GPU-a"), Worker("GPU-b")}, 5);
  EXPECT_THAT(Rows(), SizeIs(2));
  Update({Worker("GPU-b")}, 6);
  EXPECT_THAT(Rows(), SizeIs(1));
  rows_.Rewrite();
  const auto rewritten = Rows();
  ASSERT_THAT(rewritten, SizeIs(1));
  EXPECT_EQ(rewritten[0].device_name, "GPU-b");
}

TEST_F(PodDeviceRowsTest, ANumberIsADeviceOnceItIsKnown) {
  Update({Worker("gpu-1")}, 5);
  EXPECT_EQ(Rows().at(0).device, std::nullopt);
  devices_->Add({.device = {6, 1}, .ordinal = 1, .uuid = "GPU-1"}, DeviceTable::Witness::kNvml);
  Update({Worker("gpu-1")}, 6);
  EXPECT_EQ(Rows().at(0).device, (Id128{6, 1}));
}

TEST_F(PodDeviceRowsTest, AnotherSourceBeginsAnew) {
  Update({Worker("GPU-a")}, 5);
  Rows();
  rows_.SetSource({8, 8}, 2000);
  const auto rows = Rows();
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].source, (Id128{9, 9}));
  EXPECT_TRUE(rows[0].end_ns.has_value());
  EXPECT_EQ(rows[1].source, (Id128{8, 8}));
  EXPECT_EQ(rows[1].start_ns - 2000, *rows[0].end_ns - 1000) << "the same instant";
  EXPECT_EQ(rows[1].end_ns, std::nullopt);
}

}  // namespace
}  // namespace gpusonde::agent
