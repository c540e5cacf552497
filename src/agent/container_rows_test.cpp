// SPDX-License-Identifier: Apache-2.0
#include "agent/container_rows.h"

#include <gtest/gtest.h>

#include "model/batch_rows.h"
#include "model/tables/processes.h"
#include "model/tables/threads.h"

namespace gpusonde::agent {
namespace {

const std::string kContainer(64, 'c');

model::Batch ProcessIn(const std::string& cgroup) {
  model::BatchBuilder rows(model::kProcesses);
  rows.Append({.process = {5, 1}, .source = {9, 9}, .pid = 100, .cgroup = cgroup});
  return rows.Take();
}

class ContainerRowsTest : public testing::Test {
 protected:
  ContainerRows rows_{[this](std::string_view) {
    ++asked_;
    return named_ ? std::optional(proc::ContainerName{"worker", "trainer-0", "ml"}) : std::nullopt;
  }};
  bool named_ = true;
  int asked_ = 0;
};

TEST_F(ContainerRowsTest, AContainerIsWrittenOnce) {
  rows_.Ingest(ProcessIn("/docker/" + kContainer));
  rows_.Ingest(ProcessIn("/docker/" + kContainer));
  const auto batch = rows_.DrainRows();
  ASSERT_TRUE(batch.has_value());
  const auto rows = model::RowsOf(model::kContainers, *batch);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].container, kContainer);
  EXPECT_EQ(rows[0].source, (Id128{9, 9}));
  EXPECT_EQ(rows[0].name, "worker");
  EXPECT_EQ(rows[0].pod, "trainer-0");
  EXPECT_EQ(rows[0].pod_namespace, "ml");
  EXPECT_FALSE(rows_.DrainRows().has_value());
  rows_.Rewrite();
  rows_.Ingest(ProcessIn("/docker/" + kContainer));
  EXPECT_TRUE(rows_.DrainRows().has_value()) << "a new store needs it again";
}

TEST_F(ContainerRowsTest, NamesMayComeLaterButNotForEver) {
  named_ = false;
  rows_.Ingest(ProcessIn("/docker/" + kContainer));
  EXPECT_FALSE(rows_.DrainRows().has_value());
  named_ = true;
  rows_.Ingest(ProcessIn("/docker/" + kContainer));
  EXPECT_TRUE(rows_.DrainRows().has_value());
  named_ = false;
  rows_.Rewrite();
  asked_ = 0;
  for (int i = 0; i < 100; ++i) rows_.Ingest(ProcessIn("/docker/" + kContainer));
  EXPECT_EQ(asked_, 5);
}

TEST_F(ContainerRowsTest, TheRuntimeKnowsBetter) {
  named_ = false;
  rows_.Ingest(ProcessIn("/docker/" + kContainer));
  EXPECT_TRUE(rows_.TakeUnknown());
  EXPECT_FALSE(rows_.TakeUnknown()) << "once";
  pods::PodContainers found;
  found.by_id[kContainer] = {"worker", "train-7", "ml", "0f8a", {{"app", "train"}, {"team", "vision"}}};
  found.by_id["another"] = {"web", "web-0", "ml", "5d3b", {}};
  rows_.Update(found);
  const auto batch = rows_.DrainRows();
  ASSERT_TRUE(batch.has_value());
  const auto rows = model::RowsOf(model::kContainers, *batch);
  ASSERT_EQ(rows.size(), 1u) << "containers without processes have no rows";
  EXPECT_EQ(rows[0].pod, "train-7");
  EXPECT_EQ(rows[0].pod_uid, "0f8a");
  EXPECT_EQ(rows[0].source, (Id128{9, 9}));
  const auto labels = model::RowsOf(model::kPodLabels, *rows_.DrainLabels());
  ASSERT_EQ(labels.size(), 2u);
  EXPECT_EQ(labels[1].name, "team");
  EXPECT_EQ(labels[1].value, "vision");

  rows_.Update(found);
  rows_.Ingest(ProcessIn("/docker/" + kContainer));
  EXPECT_FALSE(rows_.DrainRows().has_value()) << "nothing has changed";
  EXPECT_FALSE(rows_.TakeUnknown());
  found.by_id[kContainer].labels.pop_back();
  rows_.Update(found);
  const auto removed = model::RowsOf(model::kPodLabels, *rows_.DrainLabels());
  ASSERT_EQ(removed.size(), 2u);
  EXPECT_EQ(removed[1].name, "team");
  EXPECT_EQ(removed[1].value, "");

  rows_.Rewrite();
  rows_.Ingest(ProcessIn("/docker/" + kContainer));
  EXPECT_TRUE(rows_.DrainRows().has_value()) << "a new store needs it again";
  EXPECT_EQ(asked_, 1) << "files are not looked at";
}

TEST_F(ContainerRowsTest, PodsWithGpusAreWrittenWithoutAProcess) {
  pods::PodContainers found;
  found.by_id[kContainer] = {"worker", "train-7", "ml", "0f8a", {{"team", "vision"}}};
  found.by_id["another"] = {"web", "web-0", "ml", "5d3b", {}};
  rows_.Update(found);
  EXPECT_FALSE(rows_.DrainRows().has_value());
  const pods::PodDevices devices{
      .devices = {
          {.pod_namespace = "ml", .pod = "train-7", .container = "worker", .resource = "r", .id = "GPU-a"}}};
  rows_.Include(devices, {8, 8});
  rows_.Include(devices, {8, 8});
  const auto rows = model::RowsOf(model::kContainers, *rows_.DrainRows());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].pod, "train-7");
  EXPECT_EQ(rows[0].source, (Id128{8, 8}));
  EXPECT_TRUE(rows_.DrainLabels().has_value());
}

TEST_F(ContainerRowsTest, OnlyContainersAreLookedFor) {
  rows_.Ingest(ProcessIn("/system.slice/ssh.service"));
  model::BatchBuilder threads(model::kThreads);
  threads.Append({.process = {5, 1}, .tid = 100});
  rows_.Ingest(threads.Take());
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace gpusonde::agent
