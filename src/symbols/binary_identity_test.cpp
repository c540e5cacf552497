// SPDX-License-Identifier: Apache-2.0
#include "symbols/binary_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/testing/temp_folder.h"

namespace gpusonde::symbols {
namespace {

constexpr const char* kIdentifiedProgram = "/usr/bin/true";

BinaryIdentity IdentityOf(const std::string& path) {
  const Fd file = Open(path, O_RDONLY).value();
  return IdentifyBinary(file, path).value();
}

// A copy of a system program that belongs to somebody else than root.
class BinaryIdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(kIdentifiedProgram, path_);
    ASSERT_TRUE(::getuid() != 0 || ::chown(path_.c_str(), 65534, 65534) == 0);
  }
  TempFolder folder_;
  std::string path_ = folder_ / "program";
};

TEST_F(BinaryIdentityTest, ASystemFileIsKnownByItsBuildIdAlone) {
  const BinaryIdentity identity = IdentityOf(kIdentifiedProgram);
  ASSERT_EQ(identity.build_id.size(), 40u);
  EXPECT_EQ(identity.id, SystemBinaryId(identity.build_id));
}

TEST_F(BinaryIdentityTest, AStrangersFileWithItsBuildIdIsAnother) {
  EXPECT_EQ(IdentityOf(path_).build_id, IdentityOf(kIdentifiedProgram).build_id);
  EXPECT_NE(IdentityOf(path_).id, IdentityOf(kIdentifiedProgram).id);
  const std::string copy = folder_ / "copy";
  std::filesystem::copy_file(kIdentifiedProgram, copy);
  ::chmod(copy.c_str(), 0777);
  EXPECT_NE(IdentityOf(copy).id, IdentityOf(kIdentifiedProgram).id) << "anybody can write it";
}

TEST_F(BinaryIdentityTest, AFileOfRootThatIsNotHereIsNoSystemFile) {
  const Fd file = Open(kIdentifiedProgram, O_RDONLY).value();
  EXPECT_FALSE(IsSystemFile(file, "/usr/bin/false")) << "what another root calls so";
  EXPECT_FALSE(IsSystemFile(file, "/no/such/file"));
}

TEST_F(BinaryIdentityTest, StaysWhenTheFileIsRenamedLinkedOrGetsOtherRights) {
  const Id128 id = IdentityOf(path_).id;
  const std::string renamed = folder_ / "renamed", linked = folder_ / "linked";
  std::filesystem::rename(path_, renamed);
  EXPECT_EQ(IdentityOf(renamed).id, id);
  std::filesystem::create_hard_link(renamed, linked);
  ::chmod(linked.c_str(), 0700);
  EXPECT_EQ(IdentityOf(linked).id, id);
}

TEST_F(BinaryIdentityTest, ChangesWithTheContent) {
  const Id128 id = IdentityOf(path_).id;
  ASSERT_EQ(::truncate(path_.c_str(), 20'000), 0);
  EXPECT_NE(IdentityOf(path_).id, id);
}

}  // namespace
}  // namespace gpusonde::symbols
