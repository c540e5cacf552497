// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/event_filter.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "importers/kineto/brackets.h"

namespace gpusonde::importers::kineto {
namespace {

std::vector<uint32_t> EndsIn(const std::string& events) {
  BracketScanner scanner;
  scanner.Scan(events, 1, true);
  std::vector<uint32_t> ends;
  scanner.TakeEnds(ends);
  return ends;
}

struct Filtered {
  std::string left;
  int64_t left_out = 0;
};

Filtered Filter(std::string events) {
  events.reserve(events.size() + EventFilter::kPadding);
  EventFilter filter;
  return {.left = std::string(filter.Filter(events, EndsIn(events))), .left_out = filter.left_out()};
}

TEST(EventFilter, RemovesEventsThatAreOnlyCounted) {
  const Filtered filtered = Filter(
      R"([{"cat":"cpu_op","a":[1,{}]}, {"ph":"X","cat":"kernel"} ,{"n":1.5,"cat" : "ac2g"},{"cat":"Memcpy"}])");
  EXPECT_EQ(filtered.left, R"([{"ph":"X","cat":"kernel"},{"cat":"Memcpy"}])");
  EXPECT_EQ(filtered.left_out, 2);
  EXPECT_EQ(Filter(R"([{"cat":"cpu_op"}])").left, "[]");
  EXPECT_EQ(Filter(R"([{"ph":"s","cat":"kernel"},{"ph":"M"}])").left, "[]");
}

TEST(EventFilter, AnUnclearCategoryStays) {
  for (const std::string event :
       {R"({})", R"({"ph":"X"})", R"({"ph":7,"cat":"cpu_op"})", R"({"args":{"cat":"kernel"},"cat":"cpu_op"})",
        R"({"cat":7})", R"([])", R"({"cat":["cpu_op"]})", R"({"name":"\"cat\":\"cpu_op\"","x":1})",
        R"({"ph" "X","cat":"cpu_op"})"}) {
    const Filtered filtered = Filter("[" + event + R"(,{"cat":"cpu_op"}])");
    EXPECT_EQ(filtered.left, "[" + event + "]");
    EXPECT_EQ(filtered.left_out, 1) << event;
  }
}

TEST(EventFilter, WhatIsNoArrayOfObjectsIsLeftToTheParser) {
  for (const std::string events :
       {R"([{"cat":"cpu_op"} {"cat":"cpu_op"}])", R"([{"cat":"cpu_op"},])", R"([,{"cat":"cpu_op"}])",
        R"([{"cat":"cpu_op"},7])", R"([{"cat":"cpu_op"})", R"([])"}) {
    const Filtered filtered = Filter(events);
    EXPECT_EQ(filtered.left, events);
    EXPECT_EQ(filtered.left_out, 0) << events;
  }
}

// Events in any number, order and spelling: the result has the other events unchanged, and OriginOf is right
// for each of their bytes.
TEST(EventFilter, TheOtherEventsStayUnchanged) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string events = "[";
    std::string expected;
    int64_t counted = 0;
    for (auto count = random() % 20; count > 0; --count) {
      const bool stays = random() % 2 == 0;
      nlohmann::json event = {{"a", std::string(random() % 3 == 0 ? random() % 150 : 0, '\\')},
                              {"b", random() % 3},
                              {"cat", stays ? "kernel" : "cpu_op"},
                              {"zzz", {1, "]"}}};
      const std::string text = event.dump();
      if (events.size() > 1) events += std::string(random() % 2, ' ') + ",\n";
      events += text;
      counted += stays ? 0 : 1;
      if (stays) expected += (expected.empty() ? "" : ",") + text;
    }
    events += " ]";
    events.reserve(events.size() + EventFilter::kPadding);
    EventFilter filter;
    const std::string_view left = filter.Filter(events, EndsIn(events));
    EXPECT_EQ(filter.left_out(), counted);
    EXPECT_EQ(nlohmann::json::parse(left), nlohmann::json::parse("[" + expected + "]"));
    for (size_t at = left.find('{'); at < left.size(); ++at) {
      if (left[at] == ',' || left[at] == ']') continue;  // between events these are new
      ASSERT_EQ(left[at], events[filter.OriginOf(at)]) << events;
    }
  }
}

}  // namespace
}  // namespace gpusonde::importers::kineto
