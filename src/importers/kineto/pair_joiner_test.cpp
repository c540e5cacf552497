// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/pair_joiner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::importers::kineto {
namespace {

using testing::ElementsAre;

EventSplitter::Chunk ChunkOf(const std::vector<std::string>& events) {
  EventSplitter::Chunk chunk{.text = "[", .ends = {}};
  for (const std::string& event : events) {
    if (chunk.text.size() > 1) chunk.text += ", ";
    chunk.text += event;
    chunk.ends.push_back(static_cast<uint32_t>(chunk.text.size()));
  }
  chunk.text += " ]";
  return chunk;
}

// "ph name ts dur" of each event; as parsers do, the last of equal keys counts.
std::vector<std::string> EventsOf(const EventSplitter::Chunk& chunk) {
  std::vector<std::string> events;
  const auto json = nlohmann::json::parse(chunk.text);
  EXPECT_EQ(json.size(), chunk.ends.size());
  for (const auto& event : json) {
    std::string text =
        event["ph"].get<std::string>() + " " + event.value("name", "") + " " + event["ts"].dump();
    if (event.contains("dur")) text += " " + event["dur"].dump();
    if (event.contains("args")) text += " " + event["args"].dump();
    events.push_back(text);
  }
  return events;
}

TEST(PairJoiner, ATextWithTheLetterInQuotesMayHavePairs) {
  for (const std::string_view text : {R"({"ph":"B"})", R"("B")", R"(BB"B"B)", R"({"ph": "X", "a": "B"})"})
    EXPECT_TRUE(PairJoiner::MayHavePairs(text)) << text;
  for (const std::string_view text : {"", "B", "\"B", "B\"", R"({"ph":"X","name":"BB"})", R"("AB")"})
    EXPECT_FALSE(PairJoiner::MayHavePairs(text)) << text;
}

TEST(PairJoiner, EndsBelongToTheLastBeginOfTheirThread) {
  PairJoiner joiner;
  EventSplitter::Chunk chunk = ChunkOf(
      {R"({"ph":"B","name":"outer","pid":1,"tid":1,"ts":1.5})",
       R"({"ph":"B","name":"inner","pid":1,"tid":1,"ts":2})",
       R"({"ph":"B","name":"elsewhere","pid":1,"tid":2 ,"ts":3})", R"({"ph":"E","pid":1,"tid":1,"ts":4.25})",
       R"({"ph":"X","name":"whole","pid":1,"tid":1,"ts":4,"dur":1})",
       R"({"ph":"E","pid":1,"tid":1,"ts":10,"args":{"a":[1]}})", R"({"ph":"E","pid":1,"tid":2,"ts":11})"});
  joiner.Join(chunk);
  EXPECT_THAT(EventsOf(chunk), ElementsAre("X inner 2 2.25", "X whole 4 1", R"(X outer 1.5 8.5 {"a":[1]})",
                                           "X elsewhere 3 8.0"));
  EXPECT_FALSE(joiner.Finish(chunk));
}

TEST(PairJoiner, AnEndMayBeInALaterChunk) {
  PairJoiner joiner;
  EventSplitter::Chunk chunk = ChunkOf({R"({"ph":"B","name":"k","pid":1,"tid":1,"ts":1,"args":{}})"});
  joiner.Join(chunk);
  EXPECT_THAT(EventsOf(chunk), ElementsAre());
  chunk = ChunkOf({R"({"ph":"i","name":"other","pid":1,"tid":1,"ts":2})"});
  joiner.Join(chunk);
  chunk = ChunkOf({R"({"ph":"E","pid":1,"tid":1,"ts":5})"});
  joiner.Join(chunk);
  EXPECT_THAT(EventsOf(chunk), ElementsAre("X k 1 4.0 {}"));
}

TEST(PairJoiner, WhatHasNoOtherPartStaysAsItIs) {
  PairJoiner joiner;
  EventSplitter::Chunk chunk =
      ChunkOf({R"({"ph":"E","pid":1,"tid":1,"ts":5})", R"({"ph":"B","name":"open","pid":1,"tid":1,"ts":7})"});
  joiner.Join(chunk);
  EXPECT_THAT(EventsOf(chunk), ElementsAre("E  5"));
  EXPECT_TRUE(joiner.Finish(chunk));
  EXPECT_THAT(EventsOf(chunk), ElementsAre("B open 7"));
  EXPECT_FALSE(joiner.Finish(chunk));
}

// Text that isn't JSON is for the parser, which says where it is.
TEST(PairJoiner, DamagedEventsStayAsTheyAre) {
  PairJoiner joiner;
  for (const std::string text : {"[{\"ph\":\"B\",]", "[7, {\"ph\"}]", "[]", "[{\"ph\":\"B\",\"ts\":1}x]"}) {
    EventSplitter::Chunk chunk{.text = text, .ends = {}};
    if (const size_t end = text.find('}'); end != std::string::npos)
      chunk.ends.push_back(static_cast<uint32_t>(end + 1));
    joiner.Join(chunk);
    EXPECT_TRUE(chunk.text.starts_with('[') && chunk.text.ends_with(']')) << chunk.text;
  }
}

}  // namespace
}  // namespace gpusonde::importers::kineto
