// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "exporters/exporter.h"
#include "exporters/sample_profile.h"

namespace gpusonde::exporters {
namespace {

TEST(Folded, SumsThreadsByProcessNameWithInlinedFramesInTheirPlace) {
  EXPECT_EQ(kFolded.render(SampleProfile(), {}).value(),
            "train;[unknown] 1\n"
            "train;main;[libz.so.1+0x9999] 8\n"
            "train;main;a:b\\x0ac\\xff 5\n"
            "train;main;inflate;vfs_read 10\n"
            "train;main;jit::spin 6\n"
            "train;main;load_batch(int);copy_bytes;inflate 30\n");
}

TEST(Folded, KeepsThreadsOfTheSameNameApartWhenAsked) {
  const std::string text = kFolded.render(SampleProfile(), {.per_thread = true}).value();
  EXPECT_NE(text.find("train (pid 411);loader (tid 412);main;load_batch(int);copy_bytes;inflate 20\n"),
            std::string::npos);
  EXPECT_NE(text.find("train (pid 500);train (tid 500);main;load_batch(int);copy_bytes;inflate 10\n"),
            std::string::npos);
}

TEST(Folded, TimeIsRoundedOncePerLineAndNotPerSample) {
  model::Profile profile = SampleProfile();
  for (model::Profile::Sample& sample : profile.samples) sample.weight_ns = 1'400;
  const std::string text = kFolded.render(profile, {.value = Value::kMicroseconds}).value();
  EXPECT_NE(text.find("copy_bytes;inflate 3\n"), std::string::npos);  // twice 1.4 µs
  EXPECT_NE(text.find("jit::spin 1\n"), std::string::npos);
}

TEST(Folded, AnEmptyProfileIsAnEmptyText) { EXPECT_EQ(kFolded.render({}, {}).value(), ""); }

}  // namespace
}  // namespace gpusonde::exporters
