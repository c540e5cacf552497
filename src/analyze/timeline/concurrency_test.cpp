// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/concurrency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "analyze/archive.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kEndNs = 4'000;

// By start: overlaps within streams, events within others, empty ones, and equal times.
std::vector<LaunchedRecord> RandomEvents(uint32_t seed, uint32_t streams, size_t count) {
  std::mt19937 random(seed);
  const auto below = [&random](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  std::vector<LaunchedRecord> events(count);
  for (LaunchedRecord& event : events) {
    event.gpu.start_ns = below(kEndNs - 200);
    event.gpu.end_ns = event.gpu.start_ns + (below(8) == 0 ? 0 : below(10) == 0 ? below(200) : below(30));
    event.gpu.stream = static_cast<uint32_t>(below(streams)) * 16;
    event.has_call = below(3) == 0 ? 0 : 1;
    event.call_start_ns = event.gpu.start_ns - below(50);
  }
  std::ranges::sort(events, ByStart());
  return events;
}

// The streams of what runs in each ns, as often as they have events there.
std::vector<std::multiset<uint32_t>> RunningIn(const std::vector<LaunchedRecord>& events) {
  std::vector<std::multiset<uint32_t>> running(kEndNs);
  for (const LaunchedRecord& event : events)
    for (int64_t ns = event.gpu.start_ns; ns < event.gpu.end_ns; ++ns)
      running[static_cast<size_t>(ns)].insert(event.gpu.stream);
  return running;
}

TEST(Concurrency, IsThatOfCountingWhatRunsInEachNanosecond) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const std::vector<LaunchedRecord> events = RandomEvents(seed, 4, size_t{20} * seed);
    Concurrency concurrency;
    for (const LaunchedRecord& event : events) concurrency.Add(event.gpu.start_ns, event.gpu.end_ns);
    int64_t at_least_ns[] = {0, 0, 0, 0}, work_ns = 0;
    for (const auto& running : RunningIn(events)) {
      work_ns += static_cast<int64_t>(running.size());
      for (size_t level = 0; level < Concurrency::kLevels; ++level)
        at_least_ns[level] += running.size() > level ? 1 : 0;
    }
    EXPECT_EQ(concurrency.work_ns(), work_ns);
    for (size_t level = 0; level < Concurrency::kLevels; ++level)
      EXPECT_EQ(concurrency.at_least_ns()[level], at_least_ns[level]) << "seed " << seed << ", " << level;
    EXPECT_GT(at_least_ns[3] + (seed < 10 ? 1 : 0), 0);
  }
}

StreamTable TableOf(const std::vector<LaunchedRecord>& events) {
  StreamTable table;
  int64_t ended_ns = -1;
  for (const LaunchedRecord& event : events) {
    table.Add(event, event.gpu.start_ns >= ended_ns);
    ended_ns = std::max(ended_ns, event.gpu.end_ns);
  }
  return table;
}

// The numbers of streams, by place.
std::vector<uint32_t> StreamsByFirstEvent(const std::vector<LaunchedRecord>& events) {
  std::vector<uint32_t> streams;
  for (const LaunchedRecord& event : events)
    if (std::ranges::find(streams, event.gpu.stream) == streams.end()) streams.push_back(event.gpu.stream);
  return streams;
}

void ExpectSharedTimes(const std::vector<LaunchedRecord>& events, const StreamTable& table) {
  const std::vector<uint32_t> streams = StreamsByFirstEvent(events);
  std::map<uint32_t, size_t> places;
  for (const uint32_t stream : streams) {
    const size_t place = std::min(places.size(), StreamTable::kMaxStreams);
    places[stream] = place;
  }
  std::map<size_t, int64_t> busy_ns;
  std::map<std::pair<size_t, size_t>, int64_t> shared_ns;
  for (const auto& running : RunningIn(events)) {
    std::set<size_t> running_places;
    for (const uint32_t stream : running) running_places.insert(places.at(stream));
    for (const size_t later : running_places) {
      ++busy_ns[later];
      for (const size_t earlier : running_places)
        if (earlier < later) ++shared_ns[{later, earlier}];
    }
  }
  ASSERT_EQ(table.streams().size(), std::min(streams.size(), StreamTable::kMaxStreams + 1));
  for (size_t later = 0; later < table.streams().size(); ++later) {
    if (later < StreamTable::kMaxStreams) {
      EXPECT_EQ(table.streams()[later].stream, streams[later]);
    }
    EXPECT_EQ(table.streams()[later].busy.length_ns(), busy_ns[later]) << later;
    for (size_t earlier = 0; earlier < later; ++earlier)
      EXPECT_EQ(table.SharedNs(later, earlier), (shared_ns[{later, earlier}])) << later << ", " << earlier;
  }
}

TEST(StreamTable, PairsShareTheNanosecondsInWhichBothHaveWork) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const std::vector<LaunchedRecord> events = RandomEvents(seed, 5, 200);
    ExpectSharedTimes(events, TableOf(events));
  }
}

TEST(StreamTable, StreamsBeyondTheBoundCountAsOne) {
  const std::vector<LaunchedRecord> events = RandomEvents(3, 100, 2'000);
  const StreamTable table = TableOf(events);
  ASSERT_EQ(table.streams().size(), StreamTable::kMaxStreams + 1);
  ExpectSharedTimes(events, table);
}

// Of each stream alone, also beyond the bound.
TEST(StreamTable, GapsAreThoseOfEachStream) {
  for (const uint32_t count : {3u, 100u}) {
    const std::vector<LaunchedRecord> events = RandomEvents(5, count, 1'000);
    std::vector<IdleTime> expected(StreamTable::kMaxStreams + 1);
    const std::vector<uint32_t> streams = StreamsByFirstEvent(events);
    IdleTime all;
    for (size_t i = 0; i < streams.size(); ++i) {
      int64_t ended_ns = kEndNs;
      for (const LaunchedRecord& event : events) {
        if (event.gpu.stream != streams[i]) continue;
        if (event.gpu.start_ns > ended_ns) {
          expected[std::min(i, StreamTable::kMaxStreams)].Add(event, ended_ns);
          all.Add(event, ended_ns);
        }
        ended_ns = ended_ns == kEndNs ? event.gpu.end_ns : std::max(ended_ns, event.gpu.end_ns);
      }
    }
    const StreamTable table = TableOf(events);
    int64_t events_of_all = 0;
    for (size_t place = 0; place < table.streams().size(); ++place) {
      const StreamTimes& times = table.streams()[place];
      events_of_all += times.events;
      EXPECT_EQ(times.gaps.host_ns, expected[place].host_ns) << place;
      EXPECT_EQ(times.gaps.back_to_back_ns, expected[place].back_to_back_ns) << place;
    }
    EXPECT_EQ(events_of_all, static_cast<int64_t>(events.size()));
    EXPECT_GT(all.host_ns, 0);
    EXPECT_EQ(table.Gaps().host_ns, all.host_ns);
    EXPECT_EQ(table.Gaps().back_to_back_ns, all.back_to_back_ns);
  }
}

TEST(StreamTable, IsArchivedWholeAndRefusesAnotherNumberOfPairs) {
  const std::vector<LaunchedRecord> events = RandomEvents(7, 5, 200);
  StreamTable table = TableOf(events);
  ArchiveWriter writer;
  writer(table);
  std::string bytes = writer.Take();
  StreamTable copy;
  ArchiveReader reader(bytes);
  reader(copy);
  ASSERT_TRUE(reader.ok());
  ExpectSharedTimes(events, copy);
  // Five streams have ten pairs: as numbers behind their count.
  const size_t count_at = bytes.size() - 11 * sizeof(int64_t);
  ASSERT_EQ(bytes[count_at], 10);
  bytes[count_at] = 9;
  ArchiveReader damaged(bytes);
  damaged(copy);
  EXPECT_FALSE(damaged.ok());
}

}  // namespace
}  // namespace gpusonde::analyze
