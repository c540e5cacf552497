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
#include "base/id128.h"
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

// A kernel beside which a copy runs for 7,654,321 ns, of its 10 ms, and a set for 5 µs.
void WriteOverlap(const std::string& path) {
  const auto event = [](std::string_view category, std::string_view name, double ts, double duration) {
    return fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":7,"ts":{:.3f},"dur":{:.3f},"args":{{"device":0,"stream":7}}}})",
        category, name, ts, duration);
  };
  std::ofstream(path) << R"({"traceEvents": [)" << event("kernel", "gemm", 0, 1'000'000) << ','
                      << event("gpu_memset", "Memset (Device)", 100, 5) << ','
                      << event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 992'345.679, 10'000) << "]}";
}

// Whoever wrote it can write a right checksum too.
TEST_F(PartFile, AnImpossibleTimeInAPartIsAnErrorWithFileAndValue) {
  const std::string other = folder_ / "overlap.json", first = folder_ / "q0", second = folder_ / "q1";
  WriteOverlap(other);
  ASSERT_TRUE(AnalyzePart({other, trace_}, options_, 0, 2, first).has_value());
  ASSERT_TRUE(AnalyzePart({other, trace_}, options_, 1, 2, second).has_value());
  ASSERT_TRUE(MergeParts({first, second}, options_).has_value());
  const auto overlapping_ns = [](int64_t ns) {
    return std::string(reinterpret_cast<const char*>(&ns), sizeof ns);
  };
  for (const std::string& path : {first, second}) {
    std::string bytes = ReadFile(path).value();
    const size_t at = bytes.find(overlapping_ns(7'654'321));
    if (at == std::string::npos) continue;
    for (const int64_t impossible_ns : {int64_t{-1}, INT64_MIN, int64_t{10'000'001}}) {
      bytes.replace(at, sizeof(int64_t), overlapping_ns(impossible_ns));
      const size_t size_at = bytes.find('\n') + 1, checksum_at = size_at + sizeof(uint64_t);
      uint64_t size = 0;
      bytes.copy(reinterpret_cast<char*>(&size), sizeof size, size_at);
      const Id128 checksum =
          IdHasher("analyze part").Add(bytes.substr(checksum_at + sizeof(Id128), size)).Finish();
      bytes.replace(checksum_at, sizeof checksum, reinterpret_cast<const char*>(&checksum), sizeof checksum);
      const std::string hostile = folder_ / "hostile";
      std::ofstream(hostile, std::ios::binary) << bytes;
      const auto merged = MergeParts({hostile, path == first ? second : first}, options_);
      ASSERT_FALSE(merged.has_value()) << impossible_ns;
      EXPECT_EQ(merged.error().code, ErrorCode::kCorrupt);
      EXPECT_NE(merged.error().message.find(hostile), std::string::npos) << merged.error().message;
      EXPECT_NE(merged.error().message.find("impossible concurrency.kinds.shared_ns"), std::string::npos)
          << merged.error().message;
    }
    return;
  }
  FAIL() << "no part has the time";
}

}  // namespace
}  // namespace gpusonde::analyze
