// SPDX-License-Identifier: Apache-2.0
#include "diagnose/gpu_time_by_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/testing/times.h"

namespace gpusonde::diagnose {
namespace {

constexpr int64_t kSecond = kNanosPerSecond;

// Every 10 ms a piece of work of this length.
std::vector<WorkTime> Every10Ms(int64_t from_ns, int64_t to_ns, int64_t length_ns) {
  std::vector<WorkTime> times;
  for (int64_t end_ns = from_ns; end_ns < to_ns; end_ns += 10 * kMs) times.push_back({end_ns, length_ns});
  return times;
}

TEST(GpuTimeByName, SharesAreOfTheRangeByName) {
  GpuTimeByName gpu_time;
  gpu_time.Ingest({.kind = Work::Kind::kKernel, .name = "gemm"},
                  Every10Ms(kBegin, kBegin + 10 * kSecond, 2 * kMs));
  gpu_time.Ingest({.kind = Work::Kind::kKernel, .name = "gemm"},
                  Every10Ms(kBegin + 10 * kSecond, kBegin + 12 * kSecond, 8 * kMs));
  gpu_time.Ingest({.kind = Work::Kind::kCopy, .name = "HtoD"}, Every10Ms(kBegin, kBegin + 12 * kSecond, kMs));
  gpu_time.Ingest({.kind = Work::Kind::kSync, .name = "stream"},
                  Every10Ms(kBegin, kBegin + 12 * kSecond, kMs));
  const auto before = gpu_time.SharesIn({kBegin, kBegin + 10 * kSecond});
  const auto during =
      gpu_time.SharesIn({kBegin + 10 * kSecond + 100 * kMs, kBegin + 12 * kSecond - 100 * kMs});
  ASSERT_EQ(before.size(), 2u);
  EXPECT_NEAR(before.at("gemm"), 0.2, 0.01);
  EXPECT_NEAR(before.at("copies HtoD"), 0.1, 0.01);
  EXPECT_NEAR(during.at("gemm"), 0.8, 0.01);
  EXPECT_TRUE(gpu_time.SharesIn({kBegin, kBegin}).empty());
}

TEST(GpuTimeByName, KeepsTheLongestOfManyNames) {
  GpuTimeByName gpu_time;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "kernel" + std::to_string(i);
    gpu_time.Ingest({.kind = Work::Kind::kKernel, .name = name},
                    std::vector<WorkTime>{{kBegin, i == 500 ? kMs : 1000}});
  }
  gpu_time.Ingest({.kind = Work::Kind::kKernel, .name = "later"},
                  std::vector<WorkTime>{{kBegin + kSecond, kMs}});
  const auto shares = gpu_time.SharesIn({kBegin - kSecond, kBegin + kSecond / 2});
  EXPECT_EQ(shares.size(), 64u);
  EXPECT_TRUE(shares.contains("kernel500"));
}

TEST(GpuTimeByName, ForgetsAndBoundsWhatItKeeps) {
  GpuTimeByName gpu_time;
  gpu_time.Ingest({.kind = Work::Kind::kKernel, .name = "gemm"},
                  Every10Ms(kBegin, kBegin + 4 * kSecond, kMs));
  gpu_time.ForgetBefore(kBegin + 2 * kSecond);
  EXPECT_TRUE(gpu_time.SharesIn({kBegin, kBegin + kSecond}).empty());
  EXPECT_FALSE(gpu_time.SharesIn({kBegin + 2 * kSecond, kBegin + 3 * kSecond}).empty());
  // Times that are wrong push out the oldest.
  std::vector<WorkTime> wrong;
  for (int64_t i = 0; i < 10'000; ++i) wrong.push_back({kBegin + i * kSecond, kMs});
  gpu_time.Ingest({.kind = Work::Kind::kKernel, .name = "gemm"}, wrong);
  EXPECT_TRUE(gpu_time.SharesIn({kBegin, kBegin + 5 * kSecond}).empty());
  EXPECT_FALSE(gpu_time.SharesIn({kBegin + 9'990 * kSecond, kBegin + 10'000 * kSecond}).empty());
}

}  // namespace
}  // namespace gpusonde::diagnose
