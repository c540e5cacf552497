// SPDX-License-Identifier: Apache-2.0
#include "simgpu/timeline/copy_engine.h"

#include <gtest/gtest.h>

namespace simgpu {
namespace {

TEST(CopyEngine, CopiesRunOneAfterTheOtherAtFullBandwidth) {
  CopyEngine engine;
  const CopyEngine::Span first = engine.Place(100, 1000, 10, 5);
  EXPECT_EQ(first.start_ns, 100);
  EXPECT_EQ(first.end_ns, 100 + 5 + 100);
  const CopyEngine::Span second = engine.Place(100, 500, 10, 5);
  EXPECT_EQ(second.start_ns, first.end_ns);
  EXPECT_EQ(second.end_ns, first.end_ns + 55);
}

TEST(CopyEngine, ThroughputCountsTheBytesMovedInTheWindow) {
  CopyEngine engine;
  engine.Place(0, 1000, 1, 0);     // 0…1000
  engine.Place(2000, 1000, 1, 0);  // 2000…3000
  EXPECT_EQ(engine.BytesMoved(500, 2500), 1000);
  EXPECT_EQ(engine.BusyNs(0, 3000), 2000);
  EXPECT_EQ(engine.BytesMoved(3000, 4000), 0);
}

}  // namespace
}  // namespace simgpu
