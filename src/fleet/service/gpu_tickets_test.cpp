// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/gpu_tickets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/testing/temp_folder.h"

namespace gpusonde::fleet {
namespace {

using ::testing::HasSubstr;

class GpuTicketsTest : public ::testing::Test {
 protected:
  GpuTickets Opened(std::vector<uint64_t> devices) {
    auto tickets = GpuTickets::Open(folder_.path(), std::move(devices));
    EXPECT_TRUE(tickets.has_value()) << tickets.error().message;
    return *std::move(tickets);
  }

  static std::string GpuOf(const GpuTickets& tickets, uint64_t device) {
    const std::string* const gpu = tickets.GpuOf(device);
    return gpu == nullptr ? "none" : *gpu;
  }

  const TempFolder folder_;
};

TEST_F(GpuTicketsTest, GiveGpusInTheOrderOfUuidsAndTickets) {
  GpuTickets tickets = Opened({30, 10, 20});
  EXPECT_EQ(GpuOf(tickets, 30), "none");
  ASSERT_TRUE(tickets.Assign({"GPU-b", "GPU-a"}).has_value());
  EXPECT_EQ(GpuOf(tickets, 30), "GPU-a");
  EXPECT_EQ(GpuOf(tickets, 10), "GPU-b");
  EXPECT_EQ(GpuOf(tickets, 20), "none");
}

TEST_F(GpuTicketsTest, KeepAGpuWhateverComesAndGoes) {
  GpuTickets tickets = Opened({1, 2, 3});
  ASSERT_TRUE(tickets.Assign({"GPU-b", "GPU-c"}).has_value());
  ASSERT_TRUE(tickets.Assign({"GPU-a", "GPU-c"}).has_value());
  GpuTickets later = Opened({3, 4, 2});
  ASSERT_TRUE(later.Assign({"GPU-0", "GPU-b", "GPU-c"}).has_value());
  for (const GpuTickets* const each : {&tickets, &later}) {
    EXPECT_EQ(GpuOf(*each, 1), "GPU-b");
    EXPECT_EQ(GpuOf(*each, 2), "GPU-c");
    EXPECT_EQ(GpuOf(*each, 3), "GPU-a");
  }
  EXPECT_EQ(GpuOf(later, 4), "GPU-0") << "GPU-b is of a ticket that isn't at hand now";
}

TEST_F(GpuTicketsTest, AreUnchangedWhereTheyCantBeStored) {
  GpuTickets tickets = Opened({1});
  std::filesystem::create_directory(folder_ / "gpus.json");
  EXPECT_FALSE(tickets.Assign({"GPU-a"}).has_value());
  EXPECT_EQ(GpuOf(tickets, 1), "none");
}

TEST_F(GpuTicketsTest, RefuseAnotherContent) {
  const auto error = [&](std::string_view text) {
    EXPECT_TRUE(WriteFileAtomically(folder_ / "gpus.json", text).has_value());
    const auto opened = GpuTickets::Open(folder_.path(), {1});
    return opened.has_value() ? Error{ErrorCode::kInternal, "opened"} : opened.error();
  };
  for (const char* const text :
       {"", "[]", "{}", R"({"version":1})", R"({"version":1,"gpus":[]})",
        R"({"version":1,"gpus":{"7":"GPU-a"}})", R"({"version":1,"gpus":{"0000000000000007":3}})",
        R"({"version":1,"gpus":{"0000000000000007":"GPU-a","0000000000000008":"GPU-a"}})"})
    EXPECT_EQ(error(text).code, ErrorCode::kCorrupt) << text;
  EXPECT_EQ(error(R"({"version":2,"gpus":{}})").code, ErrorCode::kTooNew);
  EXPECT_THAT(error("x").message, HasSubstr("gpus.json is not what `gpusonde fleet report` writes"));
  EXPECT_EQ(error(R"({"version":1,"gpus":{"0000000000000007":"GPU-a"}})").message, "opened");
}

}  // namespace
}  // namespace gpusonde::fleet
