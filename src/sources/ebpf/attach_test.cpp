// SPDX-License-Identifier: Apache-2.0
// What is left of BPF programs of which some could not be attached.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/testing/descriptors.h"
#include "base/testing/refused.h"
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

}  // namespace
}  // namespace gpusonde::ebpf
