// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/splitter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/fd.h"
#include "base/testing/temp_folder.h"

namespace gpusonde::importers::kineto {
namespace {

struct Parts {
  nlohmann::json events = nlohmann::json::array();
  size_t chunks = 0;
  size_t ended = 0;  // events whose ends are known
  std::string metadata;
  bool truncated = false;
  Status status;
};

Parts Split(const std::string& text) {
  const TempFolder folder;
  const std::string path = folder / "trace.json";
  EXPECT_TRUE(WriteFileAtomically(path, text).has_value());
  const auto source = ByteSource::Open(path).value();
  EventSplitter splitter(*source);
  Parts parts;
  EventSplitter::Chunk chunk;
  while (true) {
    const auto more = splitter.Next(chunk);
    if (!more.has_value()) {
      parts.status = std::unexpected(more.error());
      break;
    }
    if (!*more) break;
    ++parts.chunks;
    for (const auto& event : nlohmann::json::parse(chunk.text)) parts.events.push_back(event);
    parts.ended += chunk.ends.size();
  }
  parts.metadata = splitter.metadata();
  parts.truncated = splitter.truncated();
  return parts;
}

TEST(EventSplitter, FindsTheEventsAndTheMetadata) {
  const Parts parts = Split(
      R"({"a": "traceEvents", "x": {"traceEvents": [9]}, "traceEvents" : [ {"b":1}, {"c":[{}]} ] , "z": 2})");
  EXPECT_EQ(parts.events, nlohmann::json::parse(R"([{"b":1},{"c":[{}]}])"));
  EXPECT_EQ(nlohmann::json::parse(parts.metadata),
            nlohmann::json::parse(R"({"a":"traceEvents","x":{"traceEvents":[9]},"traceEvents":[],"z":2})"));
  EXPECT_FALSE(parts.truncated);
}

TEST(EventSplitter, TakesAnArrayAlone) {
  EXPECT_EQ(Split(R"( [{"a":1},{"b":2}] )").events.size(), 2u);
  EXPECT_EQ(Split("[]").events.size(), 0u);
  EXPECT_FALSE(Split("[]").truncated);
}

TEST(EventSplitter, BracketsQuotesAndBackslashesInStringsDontMatter) {
  const nlohmann::json events = {
      {{"name", R"(}]{["\)"}}, {{"name", "\\\\\""}}, {{"name", std::string(200, '\\')}}, {{"n", "]}"}}};
  const Parts parts = Split(nlohmann::json{{"traceEvents", events}, {"after", 1}}.dump());
  EXPECT_EQ(parts.events, events);
  EXPECT_FALSE(parts.truncated);
}

// Many chunks of events of random lengths, names and blanks: every block boundary falls everywhere.
TEST(EventSplitter, AnyEventsComeBackAsTheyWere) {
  std::mt19937 random(7);
  nlohmann::json events = nlohmann::json::array();
  std::string text = R"({"traceEvents":[)";
  for (int i = 0; i < 30'000; ++i) {
    std::string name;
    for (auto length = random() % 150; length > 0; --length) name += R"(ab"\{}[], )"[random() % 10];
    const nlohmann::json event = {{"i", i}, {"name", name}, {"args", {{"a", {1, 2}}}}};
    if (i > 0) text += std::string(random() % 3, ' ') + ',' + std::string(random() % 3, '\n');
    text += event.dump();
    events.push_back(event);
  }
  const Parts parts = Split(text + "]}");
  EXPECT_GT(parts.chunks, 2u);
  EXPECT_TRUE(parts.events == events);
  EXPECT_EQ(parts.ended, events.size());
  EXPECT_FALSE(parts.truncated);
}

TEST(EventSplitter, WhereverATraceIsCutOffItsWholeEventsAreKept) {
  std::string text = R"({"s":1,"traceEvents":[)";
  for (int i = 0; i < 20; ++i) text += fmt::format(R"({}{{"i":{},"n":"a\"]}}"}})", i > 0 ? "," : "", i);
  const size_t array_end = text.size();
  text += "]}";
  for (size_t size = 30; size <= array_end; ++size) {
    const Parts parts = Split(text.substr(0, size));
    EXPECT_TRUE(parts.truncated) << size;
    for (size_t i = 0; i < parts.events.size(); ++i) EXPECT_EQ(parts.events[i]["i"], i);
    EXPECT_TRUE(nlohmann::json::accept(parts.metadata)) << parts.metadata;
  }
  EXPECT_EQ(Split(text).events.size(), 20u);
  EXPECT_FALSE(Split(text).truncated);
}

TEST(EventSplitter, EventsLargerThanAChunkAreWhole) {
  const nlohmann::json events = {{{"name", std::string(3 << 20, 'x')}}, {{"b", 1}}};
  EXPECT_TRUE(Split(events.dump()).events == events);
}

// Of a trace that begins with `first` and more than a chunk of `metadata`.
size_t BytesOfTheFirstChunk(const std::string& first, const std::string& metadata) {
  std::string text = "[" + first;
  while (text.size() < 2 * EventSplitter::kChunkBytes) text += "," + metadata;
  while (text.size() < 3 * EventSplitter::kXlaChunkBytes) text += R"(,{"ph":"X","ts":1})";
  const TempFolder folder;
  EXPECT_TRUE(WriteFileAtomically(folder / "trace.json", text + "]").has_value());
  const auto source = ByteSource::Open(folder / "trace.json").value();
  EventSplitter splitter(*source);
  EventSplitter::Chunk chunk;
  EXPECT_TRUE(splitter.Next(chunk).value());
  return chunk.text.size();
}

TEST(EventSplitter, AllMetadataOfXlaIsInTheFirstChunk) {
  const std::string metadata = R"({"ph":"M","name":"thread_name","pid":1,"args":{"name":"Stream #14"}})";
  const std::string gpu = R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:GPU:0"}})";
  const std::string event = R"({"ph":"X","ts":1})";
  EXPECT_GT(BytesOfTheFirstChunk(metadata, metadata), 2 * EventSplitter::kChunkBytes);
  EXPECT_GT(BytesOfTheFirstChunk(gpu + "," + event, metadata), 2 * EventSplitter::kChunkBytes);
  EXPECT_LT(BytesOfTheFirstChunk(event, metadata), 2 * EventSplitter::kChunkBytes);
}

TEST(EventSplitter, RefusesJsonWithoutEvents) {
  EXPECT_EQ(Split(R"({"a":[1]})").status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(Split(R"({"a":[1)").status.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::importers::kineto
