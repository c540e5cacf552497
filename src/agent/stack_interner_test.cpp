// SPDX-License-Identifier: Apache-2.0
#include "agent/stack_interner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>
#include <fstream>
#include <future>
#include <ios>
#include <optional>
#include <utility>

#include "agent/rows_testing.h"
#include "base/fd.h"
#include "base/time.h"

namespace gpusonde::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;

StackInterner::KernelSymbolsLater Ready(symbols::KernelSymbols known) {
  std::promise<Result<symbols::KernelSymbols>> promise;
  promise.set_value(std::move(known));
  return promise.get_future();
}

class StackInternerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(processes_.Follow(::getpid()).has_value()); }
  Process& Self() { return processes_.FindSampled(::getpid(), MonotonicNow()); }
  Id128 Intern(const std::vector<uint64_t>& kernel, const std::vector<uint64_t>& user) {
    return Intern(stacks_, Self(), kernel, user);
  }
  Id128 Intern(StackInterner& stacks, Process& process, const std::vector<uint64_t>& kernel,
               const std::vector<uint64_t>& user) {
    std::vector<uint64_t> words = kernel;
    words.insert(words.end(), user.begin(), user.end());
    const gpusonde_stack_counts counts{.kernel_frames = static_cast<uint16_t>(kernel.size()),
                                       .user_frames = static_cast<uint16_t>(user.size()),
                                       .python_frames = 0,
                                       .python_end = GPUSONDE_PYTHON_COMPLETE,
                                       .native_end = GPUSONDE_NATIVE_COMPLETE};
    return stacks.Intern(process, ebpf::RawStack(counts, words), drops_);
  }

  symbols::BinaryTable binaries_;
  symbols::LineClient lines_{{}};
  Rows rows_;
  ProcessTable processes_{{.host = {}, .source = {1, 2}, .epoch_offset_ns = 0}, binaries_, rows_};
  StackInterner stacks_{
      Ready(symbols::KernelSymbols::Parse("ffffffff81000000 T _stext\nffffffff81000100 T do_sys_read\n")
                .value()),
      binaries_, lines_, rows_};
  model::DropCounts drops_;
  const uint64_t getenv_ = reinterpret_cast<uint64_t>(&::getenv);
};

TEST_F(StackInternerTest, FramesAreNamedAndWrittenOnce) {
  const Id128 first = Intern({0xffffffff81000110}, {getenv_ + 4});
  std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "functions", "name"), Contains("do_sys_read"));
  EXPECT_THAT(TextColumn(batches, "functions", "name"), Contains(HasSubstr("getenv")));
  EXPECT_THAT(TextColumn(batches, "locations", "kind"), testing::ElementsAre("kernel", "native"));

  EXPECT_EQ(Intern({0xffffffff81000110}, {getenv_ + 4}), first);
  batches = rows_.Take();
  EXPECT_EQ(FindColumn(batches, "stacks", "stack"), nullptr);
  EXPECT_EQ(FindColumn(batches, "functions", "name"), nullptr);
}

TEST_F(StackInternerTest, CallersAreLookedUpAtTheirCall) {
  // A return address just past a function's last byte belongs to that function, not to the next one.
  const Id128 as_caller = Intern({}, {getenv_ + 4, getenv_ + 1});
  const Id128 as_leaf = Intern({}, {getenv_ + 4, getenv_});
  EXPECT_NE(as_caller, as_leaf);
  std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "functions", "name"), Contains(HasSubstr("getenv")));
}

TEST_F(StackInternerTest, AnAddressOutsideAllCodeEndsTheStackAndIsCounted) {
  const Id128 stack = Intern({}, {getenv_, 0x42, getenv_});
  EXPECT_EQ(stack, Intern({}, {getenv_, 0x42})) << "frames after a wrong one are dropped";
  EXPECT_EQ(drops_.Of(model::DropReason::kUnknownMapping), 2);
}

TEST_F(StackInternerTest, ASampleWithoutFramesIsUnknownAndCounted) {
  EXPECT_EQ(Intern({}, {}), Intern({}, {0x1}));
  EXPECT_THAT(TextColumn(rows_.Take(), "locations", "kind"), testing::ElementsAre("unknown"));
  EXPECT_EQ(drops_.Of(model::DropReason::kUnknownMapping), 2);
}

TEST_F(StackInternerTest, JitCodeIsNamedFromThePerfMapEvenWhenTheMapComesLater) {
  void* code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  const auto address = reinterpret_cast<uint64_t>(code);
  processes_.Apply(
      {.time_ns = MonotonicNow(),
       .what = perf::MapEvent{.pid = ::getpid(), .start = address, .length = 4096, .path = "//anon"}});
  Intern({}, {address + 8});
  EXPECT_EQ(drops_.Of(model::DropReason::kJitUnnamed), 1);
  rows_.Take();

  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  char line[64];
  std::snprintf(line, sizeof line, "%lx 40 py::step:/app/train.py\n", address);
  ASSERT_TRUE(WriteFileAtomically(path, line).has_value());
  ::usleep(250'000);  // the map is checked a few times a second
  Intern({}, {address + 8});
  std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "functions", "name"), testing::ElementsAre("py::step:/app/train.py"));
  EXPECT_THAT(TextColumn(batches, "locations", "kind"), testing::ElementsAre("jit"));

  std::ofstream(path, std::ios::app) << std::hex << address + 0x40 << " 40 py::load:/app/train.py\n";
  ::usleep(30'000);  // sooner for a function that it did not have
  Intern({}, {address + 0x48, address + 8});
  batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "functions", "name"), testing::ElementsAre("py::load:/app/train.py"));
  EXPECT_EQ(drops_.Of(model::DropReason::kJitUnnamed), 1);
  ::unlink(path.c_str());
  ::munmap(code, 4096);
}

TEST_F(StackInternerTest, TheSameCodeHasTheSameIdInAnotherProcessTable) {
  const Id128 here = Intern({}, {getenv_});
  symbols::BinaryTable binaries;
  Rows rows;
  ProcessTable processes({.host = {}, .source = {3, 4}, .epoch_offset_ns = 5}, binaries, rows);
  ASSERT_TRUE(processes.Follow(::getpid()).has_value());
  symbols::LineClient lines{{}};
  StackInterner stacks({}, binaries, lines, rows);
  EXPECT_EQ(Intern(stacks, processes.FindSampled(::getpid(), 0), {}, {getenv_}), here);
}

TEST_F(StackInternerTest, RewriteRepeatsEveryName) {
  Intern({}, {getenv_});
  const auto before = TextColumn(rows_.Take(), "functions", "name");
  stacks_.Rewrite();
  Intern({}, {getenv_});
  EXPECT_EQ(TextColumn(rows_.Take(), "functions", "name"), before);
}

// Processes that live for a moment have stacks that are never seen again.
TEST_F(StackInternerTest, WhatItRemembersIsBounded) {
  StackInterner stacks({}, binaries_, lines_, rows_, {.raw_stacks = 10, .written_ids = 30});
  const auto intern = [&](uint64_t number) {
    return Intern(stacks, Self(), {0xffffffff81000000 + number}, {});
  };
  const Id128 first = intern(0);
  for (uint64_t number = 1; number < 12; ++number) intern(number);
  rows_.Take();
  EXPECT_EQ(intern(0), first);
  EXPECT_TRUE(rows_.Take().empty()) << "a raw stack that was forgotten is written already";
  for (uint64_t number = 12; number < 100; ++number) {
    intern(number);
    ASSERT_LE(stacks.raw_stacks(), 10U);
    ASSERT_LE(stacks.written_ids(), 30U + 2);
  }
  rows_.Take();
  EXPECT_EQ(intern(0), first);
  EXPECT_EQ(FixedColumn<Id128>(rows_.Take(), "stacks", "stack"), std::vector{first}) << "written again";
}

}  // namespace
}  // namespace gpusonde::agent
