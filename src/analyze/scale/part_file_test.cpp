// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/part_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "analyze/report.h"
#include "base/fd.h"
#include "base/testing/temp_folder.h"

namespace gpusonde::analyze {
namespace {

// A Kineto trace of more than one shard.
void WriteTrace(const std::string& path) {
  std::ofstream out(path);
  out << R"({"traceEvents": [)";
  for (int i = 0; i < 9'000; ++i)
    out << (i > 0 ? "," : "")
        << fmt::format(
               R"({{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"correlation":{},"grid":[{},1,1]}}}},)"
               R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":3,"args":{{"correlation":{}}}}})",
               i % 7, 7 + i % 3, 50 + i * 20, 5 + i % 11, i, 1 + i % 4, i * 20, i);
  out << "]}";
}

class PartFile : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteTrace(trace_);
    for (uint64_t part = 0; part < 2; ++part)
      ASSERT_TRUE(AnalyzePart({trace_}, options_, part, 2, files_[part]).has_value());
  }

  const TempFolder folder_;
  const std::string trace_ = folder_ / "trace.json";
  const std::vector<std::string> files_ = {folder_ / "p0", folder_ / "p1"};
  const Options options_{.threads = 1};
};

TEST_F(PartFile, PartsInAnyOrderGiveTheReportOfTheWhole) {
  const std::string whole = ToJson(Analyze({trace_}, options_).value());
  EXPECT_EQ(ToJson(MergeParts({files_[0], files_[1]}, options_).value()), whole);
  EXPECT_EQ(ToJson(MergeParts({files_[1], files_[0]}, options_).value()), whole);
}

TEST_F(PartFile, ACutOffPartIsAnErrorWhereverItIsCut) {
  const std::string whole = ReadFile(files_[0]).value();
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const std::string cut = folder_ / "cut";
    std::ofstream(cut, std::ios::binary) << whole.substr(0, random() % whole.size());
    const auto merged = MergeParts({cut, files_[1]}, options_);
    ASSERT_FALSE(merged.has_value());
    EXPECT_EQ(merged.error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(PartFile, ADamagedPartIsAnErrorOrAReportAndNeverWorse) {
  const std::string whole = ReadFile(files_[0]).value();
  std::mt19937 random(2);
  int errors = 0;
  for (int round = 0; round < 200; ++round) {
    std::string bytes = whole;
    // Half of the time in the header, where the sums are.
    const size_t range = round % 2 == 0 ? std::min<size_t>(bytes.size(), 4'000) : bytes.size();
    for (size_t changes = 1 + random() % 4; changes > 0; --changes)
      bytes[random() % range] = static_cast<char>(random() & 0xFF);
    const std::string damaged = folder_ / "damaged";
    std::ofstream(damaged, std::ios::binary) << bytes;
    errors += MergeParts({damaged, files_[1]}, options_).has_value() ? 0 : 1;
  }
  EXPECT_GT(errors, 90);  // the checksum holds for the header
}

}  // namespace
}  // namespace gpusonde::analyze
