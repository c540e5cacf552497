// SPDX-License-Identifier: Apache-2.0
// What kernels before this one require of BPF programs and maps, from Linux 5.15 on.
#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/testing/refuse_call.h"
#include "base/testing/refused.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/stack_tables.h"

namespace gpusonde::ebpf {
namespace {

struct Program {
  bpf_prog_info info{};
  std::array<uint32_t, 64> maps{};  // their ids
};

std::vector<Program> OwnPrograms() {
  std::vector<Program> programs;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    if (std::filesystem::read_symlink(entry.path(), closed) != "anon_inode:bpf-prog") continue;
    Program program;
    program.info.map_ids = reinterpret_cast<uintptr_t>(program.maps.data());
    program.info.nr_map_ids = static_cast<uint32_t>(program.maps.size());
    uint32_t size = sizeof program.info;
    const int fd = std::stoi(entry.path().filename());
    if (bpf_obj_get_info_by_fd(fd, &program.info, &size) == 0) programs.push_back(program);
  }
  return programs;
}

// Before 6.1 the verifier refuses others.
TEST(OldKernels, AClocksProgramUsesOnlyPreallocatedMaps) {
  const Result<StackTables> tables = StackTables::Create();
  SKIP_WHERE_REFUSED(tables);
  const Result<CpuSampler> sampler = CpuSampler::Create({}, *tables);
  SKIP_WHERE_REFUSED(sampler);
  size_t maps = 0;
  for (const Program& program : OwnPrograms()) {
    if (program.info.type != BPF_PROG_TYPE_PERF_EVENT) continue;
    ASSERT_LE(program.info.nr_map_ids, program.maps.size());
    for (uint32_t i = 0; i < program.info.nr_map_ids; ++i) {
      const Fd map(bpf_map_get_fd_by_id(program.maps.at(i)));
      bpf_map_info info{};
      uint32_t size = sizeof info;
      ASSERT_EQ(bpf_obj_get_info_by_fd(map.get(), &info, &size), 0);
      EXPECT_EQ(info.map_flags & BPF_F_NO_PREALLOC, 0U) << info.name;
      ++maps;
    }
  }
  EXPECT_GT(maps, 3U);
}

// Before 5.19 maps of maps have no batches.
TEST(OldKernels, ShardsAreAddedOneByOneWhereBatchesAreRefused) {
  SKIP_WHERE_REFUSED(StackTables::Create());
  constexpr uint32_t kNotSupported = 524;  // ENOTSUPP, the kernel's own
  enum { kDone, kNoFilter, kNotCreated, kNotAdded };
  const pid_t child = ::fork();
  if (child == 0) {
    if (!RefuseCall({.number = SYS_bpf, .error = kNotSupported, .value = BPF_MAP_UPDATE_BATCH, .mask = ~0U}))
      ::_exit(kNoFilter);
    Result<StackTables> tables = StackTables::Create();
    if (!tables.has_value()) ::_exit(kNotCreated);
    const size_t bytes = tables->table_bytes();
    // One for which the shards that are there from the start don't suffice.
    unwind::Table table{.segments = {{.file_offset = 0, .size = 1 << 30, .address = 0}}};
    for (uint32_t page = 0; page < 100; ++page) {
      table.pages.push_back({page * 10'000, 10'000});
      for (uint32_t row = 0; row < 10'000; ++row) table.rows.push_back(row * 6);
    }
    const Status added =
        tables->AddFile({1, 1}, std::move(table), std::vector(1, unwind::RuleOfKind(GPUSONDE_CFA_END)), 0);
    ::_exit(added.has_value() && tables->table_bytes() > bytes ? kDone : kNotAdded);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this kernel has no seccomp filters";
  EXPECT_EQ(WEXITSTATUS(status), kDone);
}

}  // namespace
}  // namespace gpusonde::ebpf
