// SPDX-License-Identifier: Apache-2.0
#include "store/cgroup_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/testing/temp_folder.h"

namespace gpusonde::store {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

class MemoryLimitOfCgroupTest : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  int64_t Limit(std::string_view proc_cgroup) const { return MemoryLimitOfCgroup(proc_cgroup, root_.path()); }
  TempFolder root_;
};

TEST_F(MemoryLimitOfCgroupTest, AServiceHasThatOfItsUnit) {
  Write("system.slice/memory.max", "max");
  Write("system.slice/gpusonde-up.service/memory.max", "1073741824");
  EXPECT_EQ(Limit("0::/system.slice/gpusonde-up.service\n"), 1 << 30);
  EXPECT_EQ(Limit("0::/system.slice\n"), kNone);
}

TEST_F(MemoryLimitOfCgroupTest, AnAncestorsCountsWhereItIsLess) {
  Write("memory/memory.limit_in_bytes", "9223372036854771712");
  Write("memory/slurm/uid_1/job_7/memory.limit_in_bytes", "4000000000");
  Write("memory/slurm/uid_1/job_7/step_0/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Limit("5:cpu:/\n4:memory:/slurm/uid_1/job_7/step_0\n0::/\n"), 4'000'000'000);
}

TEST_F(MemoryLimitOfCgroupTest, AContainerSeesItsOwnAtTheRoot) {
  Write("memory.max", "500000000");
  EXPECT_EQ(Limit("0::/\n"), 500'000'000);
  EXPECT_EQ(Limit("0::/docker/0123\n"), 500'000'000);  // without a namespace of cgroups
  EXPECT_EQ(Limit(""), 500'000'000);
}

TEST_F(MemoryLimitOfCgroupTest, OtherHierarchiesDoNotCount) {
  Write("memory/limited/memory.limit_in_bytes", "1000000");
  EXPECT_EQ(Limit("5:cpu:/limited\n4:memory:/\n"), kNone);
  EXPECT_EQ(Limit("malformed\n0::malformed\n"), kNone);
}

}  // namespace
}  // namespace gpusonde::store
