// SPDX-License-Identifier: Apache-2.0
#include "agent/host_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/batch.h"
#include "model/batch_rows.h"
#include "sources/proc/allowed_cpus.h"

namespace gpusonde::agent {
namespace {

constexpr Id128 kFilesSource{1, 0};
constexpr Id128 kPolled{2, 0};
constexpr int64_t kFilesOffsetNs = 1'000 * kNanosPerSecond;

std::vector<model::Signal> Write(HostFiles& files, int64_t now_ns) {
  model::BatchBuilder<decltype(model::kSignals)> rows(model::kSignals);
  files.Write(
      kFilesSource, kFilesOffsetNs, now_ns,
      [](int32_t pid) { return pid == ::getpid() ? std::optional(kPolled) : std::nullopt; }, rows);
  return model::RowsOf(model::kSignals, rows.Take());
}

TEST(HostFilesTest, TheCpusOfAWorkloadAreItsAllowedCpusTimesTheTime) {
  HostFiles files;
  files.SetWorkloads({{kPolled, ::getpid()}});
  EXPECT_TRUE(Write(files, 5 * kNanosPerSecond).empty()) << "there is no time to speak of yet";
  std::optional<model::Signal> cpus;
  for (const model::Signal& row : Write(files, 7 * kNanosPerSecond))
    if (row.metric == "process.cpus") cpus = row;
  ASSERT_TRUE(cpus.has_value());
  EXPECT_EQ(cpus->process, kPolled);
  EXPECT_EQ(cpus->start_ns, kFilesOffsetNs + 5 * kNanosPerSecond);
  EXPECT_EQ(cpus->bucket_ns, 2 * kNanosPerSecond);
  ASSERT_EQ(cpus->values.size(), 1u);
  EXPECT_EQ(cpus->values[0], int64_t{*proc::CountAllowedCpus(::getpid())} * 2 * kNanosPerSecond);
}

TEST(HostFilesTest, NothingIsWrittenWithoutWorkloads) {
  HostFiles files;
  EXPECT_TRUE(Write(files, 5 * kNanosPerSecond).empty());
  EXPECT_TRUE(Write(files, 7 * kNanosPerSecond).empty());
}

}  // namespace
}  // namespace gpusonde::agent
