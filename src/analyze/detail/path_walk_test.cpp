// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/path_walk.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::analyze {
namespace {

using importers::GpuWork;
using importers::SpanKind;

// A schedule of 1 ms and a walk through it.
class PathWalkTest : public testing::Test {
 protected:
  uint32_t Name(std::string_view name) {
    for (uint32_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name) return i;
    names_.emplace_back(name);
    return static_cast<uint32_t>(names_.size() - 1);
  }
  void Span(SpanKind kind, std::string_view name, int64_t start_ns, int64_t end_ns, int32_t thread = 0) {
    events_.spans.push_back(
        {.start_ns = start_ns, .end_ns = end_ns, .tid = thread, .name = Name(name), .kind = kind});
  }
  // Work that a call of 10 ns at `call_ns` launched.
  LaunchedRecord Work(std::string_view name, uint32_t stream, int64_t call_ns, int64_t start_ns,
                      int64_t end_ns, int32_t thread = 0) {
    Span(SpanKind::kCall, "cudaLaunchKernel", call_ns, call_ns + 10, thread);
    return Launched(name, stream, call_ns, call_ns + 10, start_ns, end_ns, thread);
  }
  LaunchedRecord Launched(std::string_view name, uint32_t stream, int64_t call_ns, int64_t call_end_ns,
                          int64_t start_ns, int64_t end_ns, int32_t thread = 0) {
    LaunchedRecord record{
        .gpu = {.start_ns = start_ns, .end_ns = end_ns, .stream = stream, .name = Name(name)},
        .call_start_ns = call_ns,
        .call_end_ns = call_end_ns,
        .has_call = 1,
        .thread = static_cast<uint32_t>(thread)};
    if (name == "copy") record.gpu.work = GpuWork::kMemcpy;
    events_.gpu.push_back(record);
    return record;
  }
  // "kind name: time" of each part, the largest first.
  std::string Walk(const LaunchedRecord& from, bool ends, int64_t begin_ns, int64_t end_ns) {
    static constexpr std::string_view kKindNames[] = {
        "compute", "communication", "transfer", "graph", "launch",    "gap",    "stream_wait",
        "call",    "operator",      "host",     "sync",  "rank_wait", "unknown"};
    CriticalPath path{.begin_ns = begin_ns, .end_ns = end_ns};
    const PathNames names{
        .of_work = [this](const GpuRecord& record) -> std::string_view { return names_[record.name]; },
        .of_span = [this](uint32_t name) -> std::string_view { return names_[name]; },
        .is_communication = [this](uint32_t name) { return names_[name].starts_with("nccl"); }};
    WalkPath(events_, from, ends, names, path);
    std::string text;
    int64_t whole_ns = 0;
    for (const CriticalPath::Part& part : path.parts) {
      text +=
          fmt::format("{} {}: {}\n", kKindNames[static_cast<size_t>(part.kind)], part.name, part.total_ns);
      whole_ns += part.total_ns;
    }
    EXPECT_EQ(whole_ns, end_ns - begin_ns);
    return text;
  }

  std::vector<std::string> names_;
  PathEvents events_;
};

// The device is never short of work: the host isn't on the path.
TEST_F(PathWalkTest, ABusyStreamIsItsWorkAndTheGapsBetween) {
  Work("a", 1, 0, 100, 1'000);
  Work("b", 1, 20, 1'010, 2'000);
  const LaunchedRecord last = Work("c", 1, 40, 2'005, 2'500);
  EXPECT_EQ(Walk(last, true, 100, 2'500), "compute b: 990\ncompute a: 900\ncompute c: 495\ngap : 15\n");
}

// Work that is launched once the device is idle waited for the host, and that for what it did.
TEST_F(PathWalkTest, ALateLaunchLeadsToTheHost) {
  Work("a", 1, 0, 100, 1'000);
  Span(SpanKind::kOperator, "aten::item", 200, 5'000);
  const LaunchedRecord next = Work("b", 1, 6'000, 6'100, 7'000);
  EXPECT_EQ(Walk(next, false, 100, 6'100),
            "operator aten::item: 4800\nhost : 1100\nlaunch : 90\ncall cudaLaunchKernel: 10\n");
}

// From the launch back to the synchronisation, and from there to the work that it waited for.
TEST_F(PathWalkTest, ASynchronisationLeadsToTheWorkThatItWaitedFor) {
  Work("a", 1, 0, 100, 4'000);
  Work("b", 2, 20, 100, 3'000);
  Span(SpanKind::kCall, "cudaDeviceSynchronize", 50, 4'500);
  const LaunchedRecord next = Work("c", 1, 5'000, 5'100, 7'000);
  EXPECT_EQ(Walk(next, false, 100, 5'100),
            "compute a: 3900\nhost : 500\nsync cudaDeviceSynchronize: 500\nlaunch : 90\ncall "
            "cudaLaunchKernel: 10\n");
}

// A copy that blocks its caller waits for the stream's work before it, whatever the call is named.
TEST_F(PathWalkTest, ABlockingCopyIsBoundByTheDevice) {
  Work("a", 1, 0, 100, 4'000);
  Span(SpanKind::kCall, "cudaMemcpyAsync", 50, 5'000);
  Launched("copy", 1, 50, 5'000, 4'010, 4'500);
  const LaunchedRecord next = Work("b", 1, 5'100, 5'200, 7'000);
  EXPECT_EQ(
      Walk(next, false, 100, 5'200),
      "compute a: 3900\nsync cudaMemcpyAsync: 500\ntransfer copy: 490\nhost : 100\nlaunch : 90\ngap : 10\n"
      "call cudaLaunchKernel: 10\n");
}

// Work that was launched in time and whose stream was free waited for the other stream.
TEST_F(PathWalkTest, AWaitForAnotherStreamLeadsToIt) {
  Work("a", 1, 0, 100, 1'000);
  Work("ncclDevKernel_AllReduce", 2, 20, 500, 80'000);
  const LaunchedRecord last = Work("b", 1, 40, 80'100, 90'000);
  EXPECT_EQ(
      Walk(last, true, 100, 90'000),
      "communication ncclDevKernel_AllReduce: 79500\ncompute b: 9900\nlaunch : 400\nstream_wait : 100\n");
}

// PyTorch's main thread does nothing while the thread of autograd launches.
TEST_F(PathWalkTest, AThreadThatWaitsForAnotherLeadsToIt) {
  Span(SpanKind::kOperator, "aten::linear", 0, 10'000);
  Work("a", 1, 5'000, 5'050, 6'000);
  Span(SpanKind::kAnnotation, "backward", 12'000, 120'000);
  Span(SpanKind::kOperator, "MmBackward0", 50'000, 100'000, /*thread=*/1);
  Work("b", 1, 90'000, 90'100, 90'200, /*thread=*/1);
  const LaunchedRecord next = Work("c", 1, 130'000, 130'100, 140'000);
  EXPECT_EQ(
      Walk(next, false, 5'050, 130'100),
      "host : 50000\noperator MmBackward0: 49990\noperator backward: 20000\noperator aten::linear: 4950\n"
      "launch : 90\ncall cudaLaunchKernel: 20\n");
}

TEST_F(PathWalkTest, WithoutALaunchOrEarlierWorkTheRestIsUnknown) {
  LaunchedRecord only{.gpu = {.start_ns = 500, .end_ns = 900, .stream = 1, .name = Name("a")}};
  events_.gpu.push_back(only);
  EXPECT_EQ(Walk(only, true, 100, 900), "compute a: 400\nunknown : 400\n");
}

TEST_F(PathWalkTest, EventsOfNoDurationEndTheWalk) {
  for (int i = 0; i < 10; ++i) {
    Launched("a", 1, 500, 500, 500, 500);
    Span(SpanKind::kCall, "cudaDeviceSynchronize", 500, 500);
  }
  EXPECT_EQ(Walk(events_.gpu.back(), true, 100, 500), "unknown : 400\n");
}

}  // namespace
}  // namespace gpusonde::analyze
