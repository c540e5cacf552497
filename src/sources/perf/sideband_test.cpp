// SPDX-License-Identifier: Apache-2.0
#include "sources/perf/sideband.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/testing/refused.h"

namespace gpusonde::perf {
namespace {

void Drain(Sideband& sideband, std::vector<SidebandEvent>& events) {
  const Status drained =
      sideband.Drain(sources::VisitOnly([&](SidebandEvent&& event) { events.push_back(std::move(event)); }));
  EXPECT_TRUE(drained.has_value());
}

// A record as the kernel lays it out: header, body, then {pid, tid, time}.
std::vector<std::byte> Record(uint32_t type, uint16_t misc, const std::vector<uint8_t>& body,
                              uint64_t time_ns) {
  const perf_event_header header{.type = type,
                                 .misc = misc,
                                 .size = static_cast<uint16_t>(sizeof(perf_event_header) + body.size() + 16)};
  std::vector<std::byte> record(header.size);
  std::memcpy(record.data(), &header, sizeof header);
  std::memcpy(record.data() + sizeof header, body.data(), body.size());
  std::memcpy(record.data() + record.size() - 8, &time_ns, 8);
  return record;
}

template <class... T>
std::vector<uint8_t> Bytes(T... values) {
  std::vector<uint8_t> bytes;
  const auto append = [&](auto value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  (append(values), ...);
  return bytes;
}

TEST(ParseRecord, ForkAndExitNameTheThread) {
  SidebandEvent event;
  model::DropCounts drops;
  const auto body = Bytes<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t>(10, 9, 11, 8, 0);
  ASSERT_TRUE(ParseRecord(Record(PERF_RECORD_FORK, 0, body, 77), event, drops).value());
  EXPECT_EQ(event.time_ns, 77);
  EXPECT_EQ(std::get<ForkEvent>(event.what).pid, 10);
  EXPECT_EQ(std::get<ForkEvent>(event.what).tid, 11);
  EXPECT_EQ(std::get<ForkEvent>(event.what).parent_pid, 9);
  EXPECT_EQ(std::get<ForkEvent>(event.what).parent_tid, 8);
  ASSERT_TRUE(ParseRecord(Record(PERF_RECORD_EXIT, 0, body, 78), event, drops).value());
  EXPECT_EQ(std::get<ExitEvent>(event.what).tid, 11);
}

TEST(ParseRecord, RejectsOrSurvivesEveryTruncation) {
  auto body = Bytes<uint32_t, uint32_t, uint64_t, uint64_t, uint64_t>(1, 1, 0x1000, 0x2000, 0);
  body.resize(body.size() + 24 + 8);
  for (const char c : std::string("/lib/x")) body.push_back(static_cast<uint8_t>(c));
  const std::vector<std::byte> whole = Record(PERF_RECORD_MMAP2, 0, body, 5);
  model::DropCounts drops;
  for (size_t size = 0; size < whole.size(); ++size) {
    SidebandEvent event;
    (void)ParseRecord(std::span(whole).first(size), event, drops);
  }
  SidebandEvent event;
  ASSERT_TRUE(ParseRecord(whole, event, drops).value());
  EXPECT_EQ(std::get<MapEvent>(event.what).path, "/lib/x");
  EXPECT_FALSE(ParseRecord(std::span(whole).first(20), event, drops).has_value());
}

TEST(ParseRecord, CountsLostRecords) {
  SidebandEvent event;
  model::DropCounts drops;
  EXPECT_FALSE(
      ParseRecord(Record(PERF_RECORD_LOST, 0, Bytes<uint64_t, uint64_t>(1, 42), 1), event, drops).value());
  EXPECT_EQ(drops.Of(model::DropReason::kSidebandLost), 42);
}

TEST(Sideband, ReportsTheWholeLifeOfAShortProcess) {
  Result<Sideband> sideband = Sideband::Create();
  SKIP_WHERE_REFUSED(sideband);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/true", "true", nullptr);
    ::_exit(127);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);

  std::vector<SidebandEvent> events;
  Drain(*sideband, events);
  // Of the main thread: ThreadSanitizer gives a forked child another one.
  int forks = 0, execs = 0, exits = 0, maps_with_build_id = 0;
  for (const SidebandEvent& event : events) {
    if (const auto* fork = std::get_if<ForkEvent>(&event.what))
      forks += fork->pid == child && fork->tid == child;
    if (const auto* comm = std::get_if<CommEvent>(&event.what)) execs += comm->pid == child && comm->exec;
    if (const auto* exit = std::get_if<ExitEvent>(&event.what))
      exits += exit->pid == child && exit->tid == child;
    if (const auto* map = std::get_if<MapEvent>(&event.what))
      maps_with_build_id += map->pid == child && map->build_id.size() == 20;
  }
  EXPECT_EQ(forks, 1);
  EXPECT_EQ(execs, 1);
  EXPECT_EQ(exits, 1);
  EXPECT_GE(maps_with_build_id, 2) << "the program and its loader";
}

TEST(Sideband, CountsTheEventsLostWhenTheRingOverflows) {
  Result<Sideband> sideband = Sideband::Create(4096);
  SKIP_WHERE_REFUSED(sideband);
  const auto map_some = [] {
    void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ::munmap(memory, 4096);
  };
  for (int i = 0; i < 1000; ++i) map_some();
  std::vector<SidebandEvent> events;
  Drain(*sideband, events);
  EXPECT_LT(events.size(), 1000u);
  map_some();  // the kernel reports the loss with the next record that fits
  Drain(*sideband, events);
  EXPECT_GT(sideband->DrainDrops().Of(model::DropReason::kSidebandLost), 0);
}

}  // namespace
}  // namespace gpusonde::perf
