// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/containers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/testing/temp_folder.h"

namespace gpusonde::proc {
namespace {

const std::string kId(64, 'a'), kOther(64, 'b');

class Containers : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "var/log/containers");
    std::filesystem::create_directories(folder_ / ("var/lib/docker/containers/" + kId));
  }
  void Link(const std::string& name) {
    std::filesystem::create_symlink("/var/log/pods/gone", folder_ / ("var/log/containers/" + name));
  }
  std::string Config() const { return folder_ / ("var/lib/docker/containers/" + kId + "/config.v2.json"); }
  std::optional<ContainerName> Find() const { return FindContainerName(kId, folder_.path()); }

  TempFolder folder_;
};

TEST_F(Containers, KubeletsLinksNamePods) {
  Link("trainer-0_ml-team_worker-" + kOther + ".log");
  Link("trainer-1.a_ml-team_worker-x-" + kId + ".log");
  const auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->pod, "trainer-1.a");
  EXPECT_EQ(found->pod_namespace, "ml-team");
  EXPECT_EQ(found->name, "worker-x");
}

TEST_F(Containers, DockersFilesNameContainers) {
  std::ofstream(Config()) << R"({"ID":"x","Name":"/train","Config":{"Env":["Name=no"]}})";
  const auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "train");
  EXPECT_EQ(found->pod, "");
}

TEST_F(Containers, WhatIsNoneIsNotNamed) {
  EXPECT_FALSE(Find().has_value()) << "nothing there";
  Link("one_two-" + kId + ".log");
  EXPECT_FALSE(Find().has_value()) << "not kubelet's";
  for (const char* text : {"", "{", "[]", R"({"Name":7})", "\xff"}) {
    std::ofstream(Config()) << text;
    EXPECT_FALSE(Find().has_value()) << text;
  }
  std::ofstream(Config()) << std::string(size_t{2} << 20, ' ') << R"({"Name":"/train"})";
  EXPECT_FALSE(Find().has_value()) << "too large";
  std::filesystem::remove(Config());
  ASSERT_EQ(::mkfifo(Config().c_str(), 0600), 0);
  EXPECT_FALSE(Find().has_value()) << "a pipe";
}

}  // namespace
}  // namespace gpusonde::proc
