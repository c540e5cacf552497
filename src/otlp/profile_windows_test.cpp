// SPDX-License-Identifier: Apache-2.0
#include "otlp/profile_windows.h"

#include <gtest/gtest.h>
#include <otlp.pb.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "exporters/testing/gunzip.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/stacks.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::otlp {
namespace {

constexpr Id128 kPushed{5, 1}, kPushedStack{4, 1};

class ProfileWindowsTest : public store::MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kProcesses, {{.process = kPushed, .pid = 100, .name = "train"}});
    Add(model::kStacks, {{.stack = kPushedStack}});
  }
  void Sample(int64_t time_ns, model::ThreadState state = model::ThreadState::kOnCpu) {
    Add(model::kSamples, {{.time_ns = time_ns,
                           .process = kPushed,
                           .tid = 100,
                           .stack = kPushedStack,
                           .state = state,
                           .weight_ns = 10}});
  }
  // The sums of the first profile of each request, by the name of its type.
  static std::vector<std::pair<std::string, int64_t>> Sums(const std::vector<Request>& requests) {
    std::vector<std::pair<std::string, int64_t>> sums;
    for (const Request& request : requests) {
      exporters::otlp::ProfilesData data;
      EXPECT_TRUE(data.ParseFromString(exporters::Gunzip(request.body)));
      const auto& profile = data.resource_profiles(0).scope_profiles(0).profiles(0);
      int64_t sum = 0;
      for (const auto& sample : profile.samples()) sum += sample.values(0);
      sums.emplace_back(data.dictionary().string_table(profile.sample_type().type_strindex()), sum);
    }
    return sums;
  }
  using All = std::vector<std::pair<std::string, int64_t>>;
};

TEST_F(ProfileWindowsTest, EveryRowIsInOneWindow) {
  ProfileWindows windows(*store_, 1 * kNanosPerSecond);
  Sample(1 * kNanosPerSecond - 1);  // before the first
  Sample(1 * kNanosPerSecond);
  Sample(2 * kNanosPerSecond - 1);
  Sample(2 * kNanosPerSecond);
  Sample(2 * kNanosPerSecond, model::ThreadState::kLock);
  EXPECT_EQ(Sums(windows.Render(2 * kNanosPerSecond).value()), (All{{"cpu", 20}}));
  EXPECT_EQ(Sums(windows.Render(3 * kNanosPerSecond).value()), (All{{"cpu", 10}, {"off_cpu", 10}}));
  EXPECT_TRUE(windows.Render(4 * kNanosPerSecond).value().empty());
}

TEST_F(ProfileWindowsTest, AClockThatWasSetBackRepeatsNothing) {
  ProfileWindows windows(*store_, 1 * kNanosPerSecond);
  Sample(1 * kNanosPerSecond);
  EXPECT_EQ(windows.Render(2 * kNanosPerSecond).value().size(), 1u);
  EXPECT_TRUE(windows.Render(1 * kNanosPerSecond).value().empty());
  EXPECT_TRUE(windows.Render(2 * kNanosPerSecond).value().empty());
}

// A store whose queries about more than some seconds fail, as they do that need too much memory.
class SmallStore final : public store::Store {
 public:
  explicit SmallStore(store::Store& all) : all_(all) {}

  Status Append(std::span<const model::Batch> batches) override { return all_.Append(batches); }
  Result<std::unique_ptr<store::Rows>> Query(const std::string& sql,
                                             std::span<const store::Parameter> parameters) override {
    int64_t first_ns = std::numeric_limits<int64_t>::max(), last_ns = 0;
    for (const store::Parameter& parameter : parameters) {
      const auto* const time_ns = std::get_if<int64_t>(&parameter);
      if (time_ns == nullptr || *time_ns < kNanosPerSecond) continue;
      first_ns = std::min(first_ns, *time_ns);
      last_ns = std::max(last_ns, *time_ns);
    }
    if (sql.contains("samples") && last_ns - first_ns > max_ns)
      return Fail(ErrorCode::kUnavailable, "this needs more memory");
    return all_.Query(sql, parameters);
  }

  int64_t max_ns = 0;

 private:
  store::Store& all_;
};

TEST_F(ProfileWindowsTest, AWindowThatCantBeReadIsDividedUntilItCan) {
  for (int64_t second = 1; second < 9; ++second) Sample(second * kNanosPerSecond);
  SmallStore small(*store_);
  ProfileWindows windows(small, 1 * kNanosPerSecond);
  EXPECT_EQ(windows.Render(9 * kNanosPerSecond).error().message, "this needs more memory");
  EXPECT_EQ(windows.Render(9 * kNanosPerSecond).error().code, ErrorCode::kUnavailable);
  small.max_ns = 3 * kNanosPerSecond;
  const All sums = Sums(windows.Render(9 * kNanosPerSecond).value());
  int64_t sum = 0;
  for (const auto& [type, of_window] : sums) sum += of_window;
  EXPECT_EQ(sum, 80) << "every row once";
  EXPECT_GE(sums.size(), 3u);
  small.max_ns = 3600 * kNanosPerSecond;
  for (int64_t second = 9; second < 30; ++second) Sample(second * kNanosPerSecond);
  EXPECT_EQ(windows.Render(12 * kNanosPerSecond).value().size(), 1u);
  EXPECT_LE(windows.Render(30 * kNanosPerSecond).value().size(), 3u) << "windows grow again";
}

}  // namespace
}  // namespace gpusonde::otlp
