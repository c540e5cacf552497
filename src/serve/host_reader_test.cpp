// SPDX-License-Identifier: Apache-2.0
#include "serve/host_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/testing/temp_folder.h"
#include "base/time.h"

namespace gpusonde::serve {
namespace {

using testing::ElementsAre;

constexpr std::chrono::seconds kNoTimeout(100);  // however slow the machine is

struct Reads {
  int count = 0;
  int64_t read_ns = 0;
};

class HostReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) all_.push_back(hosts_->FindOrMake(name).value());
  }
  // Counts how often each host is read.
  std::unique_ptr<HostReader<Reads>> Start(bool stays_fresh) {
    return std::make_unique<HostReader<Reads>>(
        *hosts_,
        HostReader<Reads>::Policy{.read = [](Host&, Reads known) { return Reads{.count = known.count + 1}; },
                                  .is_fresh = [stays_fresh](const Host&, const Reads& known,
                                                            bool) { return stays_fresh && known.count > 0; },
                                  .wanted_ns = 3'600 * kNanosPerSecond});
  }
  std::vector<int> Ask(HostReader<Reads>& reader, int at_least) {
    std::vector<int> counts;
    for (const Reads& known : reader.Ask(all_, kNoTimeout, [at_least](const Host&, const Reads& found, bool) {
           return found.count >= at_least;
         }))
      counts.push_back(known.count);
    return counts;
  }

  TempFolder folder_;
  std::unique_ptr<Hosts> hosts_ = Hosts::Open({.folder = folder_ / "hosts"}).value();
  std::vector<std::shared_ptr<Host>> all_;
};

TEST_F(HostReaderTest, WhatIsFreshIsNotReadAgain) {
  const auto reader = Start(true);
  EXPECT_THAT(Ask(*reader, 1), ElementsAre(1, 1));
  EXPECT_THAT(Ask(*reader, 1), ElementsAre(1, 1));
}

TEST_F(HostReaderTest, HostsTakeTurns) {
  const auto reader = Start(false);
  const std::vector<int> counts = Ask(*reader, 10);
  EXPECT_LE(std::abs(counts[0] - counts[1]), 1);
}

TEST_F(HostReaderTest, NothingIsReadBeforeAClientAsks) {
  const auto reader = Start(true);
  bool was_wanted = true;
  const auto note = [&](const Host&, const Reads& known, bool wanted) {
    EXPECT_EQ(known.count, 0);
    was_wanted = wanted;
    return true;
  };
  reader->Ask(all_, kNoTimeout, note);
  EXPECT_FALSE(was_wanted);
}

TEST_F(HostReaderTest, AClientDoesNotWaitForLongerThanItsTimeout) {
  const auto reader = Start(true);
  const auto never = [](const Host&, const Reads&, bool) { return false; };
  EXPECT_EQ(reader->Ask(all_, std::chrono::milliseconds(1), never).size(), 2u);
}

}  // namespace
}  // namespace gpusonde::serve
