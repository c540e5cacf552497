// SPDX-License-Identifier: Apache-2.0
#include "symbols/debug_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "symbols/elf_file.h"

namespace gpusonde::symbols {
namespace {

// A root with a stripped program, and its debug file wherever a test puts it.
class DebugFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "gpusonde-debug-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ / "opt/app");
    std::ofstream(root_ / "opt/app/x.c") << "static int hidden(int x) { return x * 3; }\n"
                                            "int (*volatile call)(int) = hidden;\n"
                                            "int main(void) { return call(0); }\n";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Build(const std::string& link_flags) {
    const std::string command = "cd " + (root_ / "opt/app").string() + " && gcc -g -O1 " + link_flags +
                                " -o x x.c && objcopy --only-keep-debug x x.debug && strip x"
                                " && objcopy --add-gnu-debuglink=x.debug x";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  void Move(const std::string& to) {
    std::filesystem::create_directories((root_ / to).parent_path());
    std::filesystem::rename(root_ / "opt/app/x.debug", root_ / to);
  }
  std::optional<Fd> Find() const {
    return OpenDebugFile(Program().get(), "/opt/app/x", {.roots = {root_.string()}, .owner = ::getuid()});
  }
  Fd Program() const { return Open(root_ / "opt/app/x", O_RDONLY).value(); }

  std::filesystem::path root_;
};

TEST_F(DebugFile, IsFoundByBuildId) {
  Build("-Wl,--build-id");
  const std::string id = ReadBuildId(Program().get()).value();
  Move("usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  EXPECT_TRUE(Find().has_value());
}

TEST_F(DebugFile, IsFoundByItsLinkInEachPlace) {
  Build("-Wl,--build-id");
  EXPECT_TRUE(Find().has_value());
  Move("opt/app/.debug/x.debug");
  EXPECT_TRUE(Find().has_value());
  std::filesystem::rename(root_ / "opt/app/.debug/x.debug", root_ / "opt/app/x.debug");
  Move("usr/lib/debug/opt/app/x.debug");
  EXPECT_TRUE(Find().has_value());
}

TEST_F(DebugFile, WithoutBuildIdsTheChecksumDecides) {
  Build("-Wl,--build-id=none");
  EXPECT_TRUE(Find().has_value());
  std::ofstream(root_ / "opt/app/x.debug", std::ios::app) << "changed";
  EXPECT_FALSE(Find().has_value());
}

TEST_F(DebugFile, OfAnotherBuildIsRefused) {
  Build("-Wl,--build-id=0x0102030405060708");
  Move("kept");
  Build("-Wl,--build-id=0x1102030405060708");
  std::filesystem::rename(root_ / "kept", root_ / "opt/app/x.debug");
  EXPECT_FALSE(Find().has_value());
}

TEST_F(DebugFile, OfAnotherUserIsIgnored) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can give files away";
  Build("-Wl,--build-id");
  const std::string program = root_ / "opt/app/x";
  ASSERT_EQ(::chown((root_ / "opt/app/x.debug").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(Find().has_value());
  ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
  const DebugPlaces places = DebugPlaces::Of(Program(), program, ::getpid());
  EXPECT_EQ(places.owner, 65534u);
  EXPECT_TRUE(OpenDebugFile(Program().get(), program, places).has_value()) << "the program's owner may";
}

TEST_F(DebugFile, OfASystemFileIsLookedForHereOnly) {
  const Fd program = Open("/usr/bin/true", O_RDONLY).value();
  EXPECT_EQ(DebugPlaces::Of(program, "/usr/bin/true", ::getpid()).roots, std::vector<std::string>{""});
}

TEST_F(DebugFile, NamesTheFunctionsThatWereStripped) {
  Build("-Wl,--build-id");
  const auto names_hidden = [](const ElfFile& file) {
    for (uint64_t offset = 0; offset < 0x4000; ++offset)
      if (const auto symbol = file.Find(offset); symbol.has_value() && symbol->name == "hidden") return true;
    return false;
  };
  EXPECT_FALSE(names_hidden(ElfFile::Load(Program(), "x").value()));
  EXPECT_TRUE(names_hidden(ElfFile::Load(Program(), "x", Find()).value()));
}

}  // namespace
}  // namespace gpusonde::symbols
