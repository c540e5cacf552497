// SPDX-License-Identifier: Apache-2.0
#include "fleet/kernel_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde::fleet {
namespace {

using testing::HasSubstr;

TEST(KernelStream, IsReadAsItsFormatSays) {
  const auto stream = ParseKernelStream(
      "kernel-stream 1\nsource a b\nlicence MIT\ndevice NVIDIA H100\nname 0 void a<b, c>(int)\nname 1 d\n"
      "mark step\nk 2 1 3 4 5 6 7 8 1024 50 2000\nc 0 dtoh 4096 7 800\nm 1 16 0 9\n");
  ASSERT_TRUE(stream.has_value()) << stream.error().message;
  EXPECT_EQ(stream->device, "NVIDIA H100");
  EXPECT_THAT(stream->names, testing::ElementsAre("void a<b, c>(int)", "d"));
  ASSERT_EQ(stream->operations.size(), 3u);
  const auto& kernel = stream->operations[0];
  EXPECT_EQ(kernel.stream, 2u);
  EXPECT_EQ(kernel.name, 1u);
  EXPECT_THAT(kernel.grid, testing::ElementsAre(3, 4, 5));
  EXPECT_THAT(kernel.block, testing::ElementsAre(6, 7, 8));
  EXPECT_EQ(kernel.shared_bytes, 1024u);
  EXPECT_EQ(kernel.gap_ns, 50);
  EXPECT_EQ(kernel.duration_ns, 2000);
  EXPECT_EQ(stream->operations[1].kind, KernelStream::Kind::kFromDevice);
  EXPECT_EQ(stream->operations[1].bytes, 4096);
  EXPECT_EQ(stream->operations[2].kind, KernelStream::Kind::kSet);
}

TEST(KernelStream, InvalidStreamsAreRejectedWithTheirLine) {
  const auto refusal = [](const std::string& text) {
    const auto stream = ParseKernelStream(text);
    return stream.has_value() ? "read" : stream.error().message;
  };
  EXPECT_THAT(refusal("kernel-stream 2\n"), HasSubstr("line 1 "));
  EXPECT_THAT(refusal("kernel-stream 1\n"), HasSubstr("without any operation"));
  EXPECT_EQ(refusal("kernel-stream 1\nname 0 a\nk 0 0 1 1 1 1 1 1 0 0 1000000000000000\n"), "read");
  EXPECT_THAT(refusal("kernel-stream 1\nname 0 a\nk 0 0 1 1 1 1 1 1 0 0 1000000000000001\n"),
              HasSubstr("line 3 "));
  for (const char* line :
       {"q 1", "k 0 0 1 1 1 1 1 1 0 0 5", "c 0 up 1 1 1", "m 0 1 1", "m 0 1 1 1 1", "name 1 a", "m 0 -1 1 1",
        "m 0 99999999999999999999 1 1", "m 99999999999 1 1 1", ""})
    EXPECT_THAT(refusal(std::string("kernel-stream 1\n") + line + "\nm 0 1 1 1\n"), HasSubstr("line 2 "))
        << line;
}

TEST(KernelStream, AllStreamsOfTheTreeAreRead) {
  const auto streams = ReadKernelStreams("data/kernel-streams");
  ASSERT_TRUE(streams.has_value()) << streams.error().message;
  EXPECT_GE(streams->size(), 7u);
  EXPECT_EQ(streams->front().source, "alexnet-infer-a100");
  EXPECT_THAT(ReadKernelStreams("data").error().message, HasSubstr("data: no kernel streams"));
}

TEST(KernelStream, TheFingerprintIsOfItsKernels) {
  const auto streams = ReadKernelStreams(KernelStreamFolder());
  ASSERT_TRUE(streams.has_value()) << streams.error().message;
  const Fingerprint first = FingerprintOf(streams->front());
  EXPECT_NEAR(Score(first, first), kFingerprintLength * kFingerprintLength, 16 * kFingerprintLength);
  EXPECT_LT(Score(first, FingerprintOf(streams->back())), Score(first, first) / 2);
  KernelStream copies;
  copies.operations = {{.kind = KernelStream::Kind::kToDevice, .bytes = 8, .duration_ns = 9}};
  EXPECT_EQ(FingerprintOf(copies), Fingerprint{});
}

}  // namespace
}  // namespace gpusonde::fleet
