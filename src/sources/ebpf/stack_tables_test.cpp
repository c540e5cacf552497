// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/stack_tables.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/testing/refuse_call.h"
#include "base/testing/refused.h"
#include "sources/ebpf/testing/find_map.h"

namespace gpusonde::ebpf {
namespace {

constexpr int32_t kUser = 1000;

class StackTablesTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<StackTables> created = StackTables::Create();
    SKIP_WHERE_REFUSED(created);
    tables_.emplace(std::move(*created));
  }

  // A table of this many rows, in pages of 10,000.
  static unwind::Table Large(uint32_t rows) {
    unwind::Table table{.segments = {{.file_offset = 0, .size = 1 << 30, .address = 0}}};
    for (uint32_t first = 0; first < rows; first += 10'000) {
      table.pages.push_back({first, std::min(rows - first, 10'000u)});
      for (uint32_t row = 0; row < table.pages.back().count; ++row) table.rows.push_back(row * 6);
    }
    return table;
  }
  static Id128 File(uint64_t number) { return {1, number}; }
  // With one rule, the same for all files.
  Status Add(const Id128& file, unwind::Table table, int32_t user_id = 0) {
    return tables_->AddFile(file, std::move(table), std::vector(1, unwind::RuleOfKind(GPUSONDE_CFA_END)),
                            user_id);
  }
  Status Map(int32_t pid, const Id128& file, int32_t user_id = 0) {
    return tables_->SetProcess(pid, user_id,
                               {{.start = 0x1000, .end = 0x2000, .file_offset = 0, .file = file}}, {});
  }

  std::optional<StackTables> tables_;
};

TEST_F(StackTablesTest, FilesInUseStayAndOthersMakeRoom) {
  // Two million rows each: six of them fill the room.
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Add(File(i), Large(2'000'000)).has_value());
  ASSERT_TRUE(Map(100, File(0)).has_value());
  for (uint64_t i = 3; i < 12; ++i) ASSERT_TRUE(Add(File(i), Large(2'000'000)).has_value());
  EXPECT_TRUE(tables_->HasFile(File(0))) << "a process maps it";
  EXPECT_FALSE(tables_->HasFile(File(1)));
  EXPECT_TRUE(tables_->HasFile(File(11)));
  EXPECT_LE(tables_->table_bytes(), size_t{48} << 20);
}

TEST_F(StackTablesTest, PreallocatesShardsForTheFirstFiles) {
  const size_t before = tables_->table_bytes();
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(Add(File(i), Large(60'000)).has_value());
  EXPECT_EQ(tables_->table_bytes(), before) << "nothing that the kernel would wait for";
  ASSERT_TRUE(Add(File(5), Large(1'000'000)).has_value());
  EXPECT_GT(tables_->table_bytes(), before);
}

TEST_F(StackTablesTest, IsOutOfSpaceWhenAllFilesAreInUse) {
  Status added;
  uint64_t count = 0;
  for (; count < 20 && added.has_value(); ++count) {
    added = Add(File(count), Large(2'000'000));
    if (!added.has_value()) continue;
    ASSERT_TRUE(Map(static_cast<int32_t>(count) + 1, File(count)).has_value());
  }
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().code, ErrorCode::kOutOfSpace);
  for (uint64_t i = 0; i < count; ++i) tables_->ForgetProcess(static_cast<int32_t>(i) + 1);
  ::usleep(150'000);  // until no program can still be looking
  EXPECT_TRUE(Add(File(99), Large(2'000'000)).has_value());
}

TEST_F(StackTablesTest, FilesThatCouldNotBeWrittenTakeNoRoom) {
  enum { kDone, kNoFilter, kAdded, kGrown };
  const pid_t child = ::fork();
  if (child == 0) {
    if (!RefuseCall({.number = SYS_mmap, .error = ENOMEM, .argument = 3, .value = MAP_SHARED, .mask = 0xF}))
      ::_exit(kNoFilter);
    size_t bytes = 0;
    for (uint64_t i = 0; i < 20; ++i) {
      if (Add(File(i), Large(1'000'000)).has_value()) ::_exit(kAdded);
      if (i == 0) bytes = tables_->table_bytes();
    }
    ::_exit(tables_->table_bytes() == bytes ? kDone : kGrown);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this kernel has no seccomp filters";
  EXPECT_EQ(WEXITSTATUS(status), kDone);
}

TEST_F(StackTablesTest, ProcessesThatComeAndGoTakeNoRoomForEver) {
  ASSERT_TRUE(Add(File(1), Large(1'000)).has_value());
  std::vector<StackTables::Mapping> many;
  for (uint64_t i = 0; i < 1000; ++i)
    many.push_back({.start = i << 20, .end = (i << 20) + 4096, .file_offset = 0, .file = File(1)});
  // 300,000 mappings in total; 65,536 fit.
  for (int32_t pid = 1; pid <= 300; ++pid) {
    ASSERT_TRUE(tables_->SetProcess(pid, 0, many, {}).has_value()) << pid;
    tables_->ForkProcess(pid, pid + 1000);
    tables_->ForgetProcess(pid);
    tables_->ForgetProcess(pid + 1000);
    if (pid % 50 == 0) ::usleep(150'000);
  }
}

TEST_F(StackTablesTest, AForkKeepsItsParentsMappingsAlive) {
  ASSERT_TRUE(Add(File(1), Large(2'000'000)).has_value());
  ASSERT_TRUE(Map(1, File(1)).has_value());
  tables_->ForkProcess(1, 2);
  tables_->ForgetProcess(1);
  ::usleep(150'000);
  for (uint64_t i = 2; i < 12; ++i) ASSERT_TRUE(Add(File(i), Large(2'000'000)).has_value());
  EXPECT_TRUE(tables_->HasFile(File(1)));
}

TEST_F(StackTablesTest, AUserHasHalfOfTheRoomForTables) {
  uint64_t count = 0;
  const auto fill = [&](int32_t user_id) {
    Status added;
    for (const uint64_t first = count; added.has_value() && count < first + 20; ++count) {
      added = Add(File(count), Large(2'000'000), user_id);
      if (!added.has_value()) continue;
      EXPECT_TRUE(Map(static_cast<int32_t>(count) + 1, File(count), user_id).has_value());
    }
    return added;
  };
  const Status filled = fill(kUser);
  ASSERT_FALSE(filled.has_value());
  EXPECT_EQ(filled.error().code, ErrorCode::kOutOfSpace);
  EXPECT_THAT(filled.error().message, testing::HasSubstr("user 1000"));
  EXPECT_EQ(count, 4u) << "three tables of 8 MB";
  ASSERT_TRUE(Add(File(100), Large(2'000'000), kUser + 1).has_value()) << "other users have theirs";
  ASSERT_TRUE(Add(File(101), Large(2'000'000), 0).has_value());
}

TEST_F(StackTablesTest, AUserMakesRoomAmongTheirOwnFiles) {
  ASSERT_TRUE(Add(File(100), Large(2'000'000), 0).has_value());
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(Add(File(i), Large(2'000'000), kUser).has_value());
  EXPECT_FALSE(tables_->HasFile(File(6)));
  EXPECT_TRUE(tables_->HasFile(File(9)));
  EXPECT_TRUE(tables_->HasFile(File(100))) << "root's";
}

TEST_F(StackTablesTest, OfTooManyMappingsThoseWithTablesAreKept) {
  ASSERT_TRUE(Add(File(1), Large(1'000)).has_value());
  std::vector<StackTables::Mapping> many;
  for (uint64_t i = 0; i <= GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS; ++i)
    many.push_back({.start = i << 20, .end = (i << 20) + 4096, .file_offset = 0, .file = {}});
  many.back().file = File(1);
  ASSERT_TRUE(tables_->SetProcess(1, 0, many, {}).has_value());
  const std::optional<int> processes = FindMap("processes"), mappings = FindMap("unwind_mappings");
  ASSERT_TRUE(processes.has_value() && mappings.has_value());
  const uint32_t pid = 1;
  gpusonde_process process{};
  ASSERT_EQ(bpf_map_lookup_elem(*processes, &pid, &process), 0);
  ASSERT_EQ(process.unwind.count, uint32_t{GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS});
  const uint32_t last = process.unwind.first + process.unwind.count - 1;
  gpusonde_unwind_mapping mapping{};
  ASSERT_EQ(bpf_map_lookup_elem(*mappings, &last, &mapping), 0);
  EXPECT_EQ(mapping.start, many.back().start);
  EXPECT_GT(mapping.pages, 0U);
}

TEST_F(StackTablesTest, AUserHasAQuarterOfTheMappings) {
  std::vector<StackTables::Mapping> many;
  for (uint64_t i = 0; i < GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS; ++i)
    many.push_back({.start = i << 20, .end = (i << 20) + 4096, .file_offset = 0, .file = {}});
  for (int32_t pid = 1; pid <= 4; ++pid) ASSERT_TRUE(tables_->SetProcess(pid, kUser, many, {}).has_value());
  const Status fifth = tables_->SetProcess(5, kUser, many, {});
  ASSERT_FALSE(fifth.has_value());
  EXPECT_EQ(fifth.error().code, ErrorCode::kOutOfSpace);
  EXPECT_TRUE(tables_->SetProcess(6, 0, many, {}).has_value());
  tables_->ForgetProcess(1);
  ::usleep(150'000);
  EXPECT_TRUE(tables_->SetProcess(5, kUser, many, {}).has_value());
}

TEST_F(StackTablesTest, AUserWhoFillsTheirShareOfRulesLeavesThoseOfOthersAlone) {
  std::vector<unwind::Rule> rules;
  for (int32_t i = 0; i < static_cast<int32_t>(RulePool::kMaxPerUser) + 1; ++i) {
    rules.push_back(unwind::RuleOfKind(GPUSONDE_CFA_REGISTER));
    rules.back().cfa_offset = i;
  }
  EXPECT_FALSE(tables_->AddFile(File(1), Large(1000), rules, kUser).has_value());
  EXPECT_TRUE(tables_->AddFile(File(2), Large(1000), rules, 0).has_value());
  EXPECT_TRUE(tables_->AddFile(File(1), Large(1000), rules, kUser).has_value()) << "root's now";
}

// A machine that compiles and tests programs runs ever new ones.
TEST_F(StackTablesTest, SmallFilesThatNoProcessMapsGoBeforeTheRoomIsFull) {
  ASSERT_TRUE(Add(File(0), {}).has_value());
  ASSERT_TRUE(Map(100, File(0)).has_value());
  for (uint64_t i = 1; i < StackTables::kMaxFiles + 10; ++i) ASSERT_TRUE(Add(File(i), {}).has_value());
  EXPECT_EQ(tables_->files(), StackTables::kMaxFiles);
  EXPECT_TRUE(tables_->HasFile(File(0))) << "a process maps it";
  EXPECT_FALSE(tables_->HasFile(File(1)));
  EXPECT_TRUE(tables_->HasFile(File(StackTables::kMaxFiles + 9)));
}

}  // namespace
}  // namespace gpusonde::ebpf
