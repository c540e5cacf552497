// SPDX-License-Identifier: Apache-2.0
// What is left of BPF programs of which some could not be attached, and of full lists.
#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/testing/descriptors.h"
#include "base/testing/refused.h"
#include "sources/ebpf/bpf_program.h"
#include "sources/ebpf/host_signals.h"

namespace gpusonde::ebpf {
namespace {

// Each program that is attached takes a descriptor.
TEST(HostSignals, WhatCouldNotAllBeAttachedIsAttachedTheNextTime) {
  Result<HostSignals> signals = HostSignals::Create();
  SKIP_WHERE_REFUSED(signals);
  const std::vector<std::string> absent = signals->absent();
  const size_t before = OpenDescriptors();
  {
    const DescriptorLimit limit(1);
    ASSERT_FALSE(signals->Follow(::getpid()).has_value());
  }
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(signals->absent(), absent) << "the kernel has them all the same";
  ASSERT_TRUE(signals->Follow(::getpid()).has_value());
  EXPECT_GT(OpenDescriptors(), before + 5);

  const size_t without_network = OpenDescriptors();
  {
    const DescriptorLimit limit(1);
    ASSERT_FALSE(signals->WatchNetwork(true).has_value());
  }
  EXPECT_EQ(OpenDescriptors(), without_network);
  ASSERT_TRUE(signals->WatchNetwork(true).has_value());
  EXPECT_EQ(OpenDescriptors(), without_network + 3);
}

// The kernel's types can't be read then, though it has them.
TEST(Explain, SaysThatTooManyFilesAreOpen) {
  const DescriptorLimit limit(0);
  const Error error = Explain(ESRCH, "load a program");
  EXPECT_THAT(error.message,
              testing::HasSubstr("load a program: Too many open files; allow more (ulimit -n"));
}

TEST(AddTarget, SaysThatTheListIsFull) {
  const Fd targets(bpf_map_create(BPF_MAP_TYPE_HASH, "few_targets", sizeof(uint32_t), 1, 1, nullptr));
  if (!targets.valid() && errno == EPERM) GTEST_SKIP() << "no permission for BPF maps";
  const Fd changes(
      bpf_map_create(BPF_MAP_TYPE_ARRAY, "few_changes", sizeof(uint32_t), sizeof(uint32_t), 1, nullptr));
  ASSERT_TRUE(targets.valid() && changes.valid());
  EXPECT_TRUE(AddTarget(targets.get(), changes.get(), ::getpid()).has_value());
  const Status second = AddTarget(targets.get(), changes.get(), ::getppid());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kOutOfSpace);
}

}  // namespace
}  // namespace gpusonde::ebpf
