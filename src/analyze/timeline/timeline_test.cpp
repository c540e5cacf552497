// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "analyze/archive.h"
#include "analyze/timeline/copy_watch.h"
#include "analyze/timeline/process_timeline.h"
#include "analyze/trace_state.h"

namespace gpusonde::analyze {
namespace {

using importers::ApiCall;
using importers::GpuEvent;
using importers::GpuWork;

// Events of one device on a few streams, some of them launched by calls.
struct Work {
  std::vector<GpuEvent> events;
  std::vector<ApiCall> calls;
};

Work RandomWork(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  Work work;
  for (int64_t i = 0; i < 200; ++i) {
    const int64_t start_ns = below(3'000'000);
    const auto kind = static_cast<GpuWork>(below(4));
    GpuEvent event{.start_ns = start_ns,
                   .end_ns = start_ns + below(40'000),
                   .correlation = i,
                   .stream = below(3),
                   .work = kind};
    if (kind == GpuWork::kKernel) event.name = below(2);
    if (kind == GpuWork::kGraph) event.name = 2;
    if (kind == GpuWork::kMemcpy) event.copy = static_cast<importers::CopyKind>(below(6));
    work.events.push_back(event);
    if (below(4) == 0) continue;
    const int64_t call_ns = start_ns - below(60'000);
    work.calls.push_back({.start_ns = call_ns, .end_ns = call_ns + 5'000, .correlation = i});
  }
  return work;
}

TraceState StateOf(const Work& work) {
  TraceState state;
  state.Name("gemm");
  state.Name("ncclDevKernel_AllReduce");
  state.Name("CUDA graph 1");
  state.Gpu(work.events);
  state.Api(work.calls);
  EXPECT_TRUE(state.Finish().has_value());
  return state;
}

bool IsComm(const GpuEvent& event) { return event.work == GpuWork::kKernel && event.name == 1; }
bool IsCompute(const GpuEvent& event) { return event.work == GpuWork::kKernel && event.name == 0; }

// One for each ns in which some event of the kind runs; bytes, which are filled and counted 20 times as fast
// as bits are here.
template <class Kind>
std::vector<uint8_t> Covered(const Work& work, Kind kind) {
  std::vector<uint8_t> covered(3'100'000);
  for (const GpuEvent& event : work.events)
    if (kind(event)) std::fill(covered.data() + event.start_ns, covered.data() + event.end_ns, uint8_t{1});
  return covered;
}

int64_t CountBoth(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  const uint8_t* one = a.data();
  const uint8_t* other = b.data();
  int64_t count = 0;
  for (size_t i = 0, size = a.size(); i < size; ++i) count += one[i] & other[i];
  return count;
}

TEST(RankTimeline, UnionsAndOverlapsAreThoseOfCountingNanoseconds) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const Work work = RandomWork(seed);
    const auto results = FollowProcesses(StateOf(work), 1).value();
    ASSERT_EQ(results.size(), 1u);
    const RankTimeline& timeline = results[0].timeline;
    const auto all = Covered(work, [](const GpuEvent&) { return true; });
    const auto comm = Covered(work, IsComm);
    const auto compute = Covered(work, IsCompute);
    const auto kernels = Covered(work, [](const GpuEvent& e) { return e.work == GpuWork::kKernel; });
    const auto graphs = Covered(work, [](const GpuEvent& e) { return e.work == GpuWork::kGraph; });
    const auto transfers = Covered(work, [](const GpuEvent& e) { return !importers::IsNamed(e.work); });
    EXPECT_EQ(timeline.busy_ns(), CountBoth(all, all));
    EXPECT_EQ(timeline.comm_ns(), CountBoth(comm, comm));
    EXPECT_EQ(timeline.compute_ns(), CountBoth(compute, compute));
    EXPECT_EQ(timeline.overlap_ns(), CountBoth(comm, compute));
    EXPECT_EQ(timeline.transfer_overlap_ns(), CountBoth(transfers, kernels));
    EXPECT_EQ(timeline.graph_ns(), CountBoth(graphs, graphs));
    const IdleTime& idle = timeline.idle();
    EXPECT_EQ(idle.host_ns + idle.back_to_back_ns + idle.device_ns + idle.unknown_ns,
              timeline.span_ns() - timeline.busy_ns());
  }
}

WorkKind KindOf(const GpuEvent& event) {
  constexpr WorkKind kCopies[] = {WorkKind::kUnknownCopy,    WorkKind::kHostToDevice, WorkKind::kDeviceToHost,
                                  WorkKind::kDeviceToDevice, WorkKind::kPeerToPeer,   WorkKind::kHostToHost};
  if (event.work == GpuWork::kMemcpy) return kCopies[static_cast<size_t>(event.copy)];
  if (event.work == GpuWork::kMemset) return WorkKind::kMemset;
  if (event.work == GpuWork::kGraph) return WorkKind::kGraph;
  return IsComm(event) ? WorkKind::kCommunication : WorkKind::kCompute;
}

TEST(RankTimeline, KindsShareTheNanosecondsInWhichBothHaveWork) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const Work work = RandomWork(seed);
    std::vector<uint32_t> running(3'100'000);  // kinds, as bits
    for (const GpuEvent& event : work.events)
      for (int64_t ns = event.start_ns; ns < event.end_ns; ++ns)
        running[static_cast<size_t>(ns)] |= 1u << static_cast<uint32_t>(KindOf(event));
    std::map<uint32_t, int64_t> times_ns;
    for (const uint32_t kinds : running) ++times_ns[kinds];
    const auto with_both = [&times_ns](uint32_t one, uint32_t other) {
      int64_t sum_ns = 0;
      for (const auto& [kinds, ns] : times_ns) sum_ns += (kinds >> one & kinds >> other & 1) != 0 ? ns : 0;
      return sum_ns;
    };
    const auto results = FollowProcesses(StateOf(work), 1).value();
    for (uint32_t later = 0; later < kWorkKinds; ++later) {
      EXPECT_EQ(results[0].timeline.KindNs(static_cast<WorkKind>(later)), with_both(later, later));
      for (uint32_t earlier = 0; earlier < later; ++earlier)
        EXPECT_EQ(results[0].timeline.SharedNs(static_cast<WorkKind>(later), static_cast<WorkKind>(earlier)),
                  with_both(later, earlier))
            << later << ", " << earlier;
    }
    EXPECT_GT(
        with_both(static_cast<uint32_t>(WorkKind::kHostToDevice), static_cast<uint32_t>(WorkKind::kMemset)),
        0);
  }
}

TEST(RankTimeline, LatencyAndDelayAreThoseOfEachEventAndItsCall) {
  const Work work = RandomWork(7);
  std::map<int64_t, ApiCall> calls;
  for (const ApiCall& call : work.calls) calls[call.correlation] = call;
  int64_t latency_ns = 0, delay_ns = 0;
  for (const GpuEvent& event : work.events) {
    const auto call = calls.find(event.correlation);
    if (call == calls.end()) continue;
    latency_ns += event.start_ns - call->second.start_ns;
    delay_ns += std::max<int64_t>(0, event.start_ns - call->second.end_ns);
  }
  const auto results = FollowProcesses(StateOf(work), 1).value();
  EXPECT_EQ(results[0].timeline.launch_latency().moments.total(), latency_ns);
  EXPECT_EQ(results[0].timeline.queue_delay().moments.total(), delay_ns);
  EXPECT_EQ(results[0].timeline.launch_latency().moments.count(), static_cast<int64_t>(work.calls.size()));
}

TEST(RankTimeline, AGapIsTheHostsIfTheCallCameAfterItBegan) {
  const auto gaps = [](int64_t call_ns, int64_t start_ns) {
    const Work work{.events = {{.start_ns = 0, .end_ns = 1'000, .correlation = 1},
                               {.start_ns = start_ns, .end_ns = start_ns + 10, .correlation = 2}},
                    .calls = {{.start_ns = call_ns, .end_ns = call_ns + 5, .correlation = 2}}};
    return FollowProcesses(StateOf(work), 1).value()[0].timeline.stream_gaps();
  };
  EXPECT_EQ(gaps(1'500, 2'000).host_ns, 1'000);
  EXPECT_EQ(gaps(900, 2'000).back_to_back_ns, 1'000);
  EXPECT_EQ(gaps(900, 41'000).device_ns, 40'000);
}

// Launches run nearly in the order of their ids, or in random order, and with one thread or two: all code
// paths must agree.
TEST(FollowProcesses, NeitherTheOrderOfCorrelationIdsNorThreadsMatter) {
  std::mt19937 random(11);
  const auto below = [&random](uint32_t limit) { return static_cast<int64_t>(random() % limit); };
  constexpr int64_t kEvents = 60'000;
  Work work;
  for (int64_t i = 0; i < kEvents; ++i) {
    const int64_t start_ns = 10 * (i + below(2'000)) * 1'000 + i % 1'000;  // each its own
    work.events.push_back({.start_ns = start_ns,
                           .end_ns = start_ns + below(20'000),
                           .correlation = i,
                           .stream = static_cast<uint32_t>(below(3)),
                           .name = static_cast<uint32_t>(below(2))});
    const int64_t call_ns = start_ns - below(3'000'000);
    if (below(10) > 0)
      work.calls.push_back({.start_ns = call_ns, .end_ns = call_ns + 5'000, .correlation = i});
  }
  const auto follow = [](const Work& of, int threads = 1) {
    ArchiveWriter archive;
    auto results = FollowProcesses(StateOf(of), threads).value();
    archive(results);
    return archive.Take();
  };
  const std::string expected = follow(work);
  EXPECT_TRUE(follow(work, 2) == expected);
  std::vector<int64_t> ids(kEvents);
  std::iota(ids.begin(), ids.end(), int64_t{0});
  std::ranges::shuffle(ids, random);
  for (GpuEvent& event : work.events) event.correlation = ids[static_cast<size_t>(event.correlation)];
  for (ApiCall& call : work.calls) call.correlation = ids[static_cast<size_t>(call.correlation)];
  EXPECT_TRUE(follow(work) == expected);
  EXPECT_TRUE(follow(work, 2) == expected);
}

// More launch shapes than are kept, each at several places of the trace.
TEST(KernelStrata, KeptShapesHaveCompleteSums) {
  std::mt19937 random(13);
  const std::vector<uint64_t> hashes = {1, 2};
  constexpr uint32_t kShapes = 30'000;
  constexpr int64_t kKernels = 200'000;
  KernelStrata strata(hashes, {}, 0, kKernels);
  std::map<std::pair<uint32_t, uint32_t>, int64_t> counts;
  for (int64_t i = 0; i < kKernels; ++i) {
    const GpuRecord record{.start_ns = i,
                           .end_ns = i + 5,
                           .stream = static_cast<uint32_t>(random() % 3),
                           .name = static_cast<uint32_t>(random() % 2),
                           .shape = static_cast<uint32_t>(random() % kShapes)};
    ++counts[{record.name, record.shape}];
    strata.Kernel(record, false);
  }
  const KernelResult result = strata.Finish();
  EXPECT_EQ(result.strata.size(), 4'096u);
  for (const Stratum& stratum : result.strata) {
    const int64_t count = counts[{stratum.name, stratum.shape}];
    EXPECT_EQ(stratum.sum.count, count);
    EXPECT_EQ(stratum.alone.count, count);
  }
}

TEST(LaunchJoin, OfCallsWithOneIdTheLastBeforeTheEventCounts) {
  const Work work{.events = {{.start_ns = 5'000, .end_ns = 5'001, .correlation = 9},
                             {.start_ns = 20'000, .end_ns = 20'001, .correlation = 9},
                             {.start_ns = 90'000'000'000, .end_ns = 90'000'000'001, .correlation = 9},
                             {.start_ns = 6'000, .end_ns = 6'001}},
                  .calls = {{.start_ns = 12'000, .end_ns = 12'100, .correlation = 9},
                            {.start_ns = 4'000, .end_ns = 4'100, .correlation = 9}}};
  const auto results = FollowProcesses(StateOf(work), 1).value();
  // The third is more than a minute away from any call, the fourth has no id.
  EXPECT_EQ(results[0].timeline.launch_latency().moments.count(), 2);
  EXPECT_EQ(results[0].timeline.launch_latency().moments.total(), 1'000 + 8'000);
  EXPECT_EQ(results[0].queue.max(), 1);
}

TEST(LaunchJoin, ProcessesWithTheSameIdsAreApart) {
  Work work{.events = {{.start_ns = 100, .end_ns = 200, .process = 1, .correlation = 5},
                       {.start_ns = 100, .end_ns = 200, .process = 2, .correlation = 5}},
            .calls = {{.start_ns = 40, .end_ns = 60, .process = 1, .correlation = 5}}};
  const auto results = FollowProcesses(StateOf(work), 2).value();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].timeline.launch_latency().moments.count(), 1);
  EXPECT_EQ(results[1].timeline.launch_latency().moments.count(), 0);
}

std::vector<WatchedKernel> Watch(const std::vector<GpuRecord>& events) {
  CopyWatch watch;
  std::vector<WatchedKernel> known;
  uint64_t number = 0;
  for (const GpuRecord& event : events) {
    if (event.work == GpuWork::kKernel)
      watch.Kernel(event, number++, /*log=*/0, known);
    else if (event.work == GpuWork::kMemcpy)
      watch.Copy(event, known);
    else
      watch.Other(event);
  }
  watch.Finish(known);
  std::ranges::sort(known, {}, &WatchedKernel::stratum);
  return known;
}

GpuRecord KernelAt(int64_t start_ns, int64_t end_ns) { return {.start_ns = start_ns, .end_ns = end_ns}; }
GpuRecord CopyAt(int64_t start_ns, int64_t end_ns,
                 importers::CopyKind kind = importers::CopyKind::kHostToDevice) {
  return {.start_ns = start_ns,
          .end_ns = end_ns,
          .name = PackTransfer(kind, importers::MemoryKind::kPinned, importers::MemoryKind::kDevice),
          .bytes = 1 << 20,
          .work = GpuWork::kMemcpy};
}

TEST(CopyWatch, FindsKernelsBesideAndRightAfterCopies) {
  const auto known = Watch({KernelAt(0, 100),          // nothing near
                            CopyAt(1'000, 2'000),      //
                            KernelAt(1'500, 1'600),    // beside
                            KernelAt(2'000, 2'100),    // its last event is a kernel
                            CopyAt(3'000, 4'000),      //
                            KernelAt(14'000, 14'500),  // 10 µs after
                            CopyAt(20'000, 21'000),    //
                            KernelAt(31'001, 31'500),  // more than 10 µs after
                            KernelAt(40'000, 50'000),  // beside a copy that begins later
                            CopyAt(49'999, 60'000)});
  ASSERT_EQ(known.size(), 3u);
  EXPECT_EQ(known[0].stratum, 1u);
  EXPECT_FALSE(known[0].copy.after);
  EXPECT_EQ(known[0].copy.host_memory, importers::MemoryKind::kPinned);
  EXPECT_EQ(kCopySizes[known[0].copy.size], "1m_and_more");
  EXPECT_EQ(known[1].stratum, 3u);
  EXPECT_TRUE(known[1].copy.after);
  EXPECT_EQ(known[2].stratum, 5u);
  EXPECT_FALSE(known[2].copy.after);
}

TEST(CopyWatch, OfSeveralCopiesTheLongestBesideCounts) {
  const auto known = Watch({CopyAt(0, 1'200, importers::CopyKind::kHostToDevice), KernelAt(1'000, 5'000),
                            CopyAt(2'000, 4'000, importers::CopyKind::kDeviceToHost)});
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].copy.kind, importers::CopyKind::kDeviceToHost);
}

TEST(CopyClass, PacksAndUnpacks) {
  for (uint16_t packed = 0; packed < CopyClass::kCount; ++packed)
    EXPECT_EQ(CopyClass::Unpack(packed).Pack(), packed);
}

}  // namespace
}  // namespace gpusonde::analyze
