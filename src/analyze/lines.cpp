// SPDX-License-Identifier: Apache-2.0
#include "analyze/lines.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/saturated.h"

namespace gpusonde::analyze {
namespace {

int64_t Total(const std::map<TransferKey, Transfers>& transfers, int64_t (*of)(const Transfers&)) {
  Int128 total = 0;
  for (const auto& [key, transfer] : transfers) total += of(transfer);
  return Saturated(total);
}

int64_t CountOf(const Transfers& transfers) { return transfers.durations.moments.count(); }
int64_t NanosOf(const Transfers& transfers) { return transfers.durations.moments.total(); }
int64_t BytesOf(const Transfers& transfers) { return transfers.bytes; }

model::Moments AllOf(std::span<const Durations> durations) {
  model::Moments all;
  for (const Durations& one : durations) all.Merge(one.moments);
  return all;
}

// Events with names that NameTable didn't keep.
int64_t CountBeyondBound(const TraceState& state) {
  int64_t count = 0;
  for (const auto named : {state.kernels(), state.graphs(), state.calls()})
    for (uint32_t id = 0; id < named.size(); ++id)
      if (named[id].moments.count() > 0 && state.names()[id] == NameTable::kOther)
        count += named[id].moments.count();
  return count;
}

std::vector<HostGapsLine::Gap> Since(int64_t first_ns, std::span<const Gap> gaps) {
  std::vector<HostGapsLine::Gap> since;
  for (const Gap& gap : gaps) since.push_back({gap.begin_ns - first_ns, gap.end_ns - first_ns});
  return since;
}

HostGapsLine MakeHostGapsLine(const HostGaps& gaps, int64_t first_ns) {
  return {.short_ns = gaps.short_ns,
          .short_count = gaps.short_count,
          .long_ns = gaps.long_ns,
          .long_count = gaps.long_count,
          .longest = Since(first_ns, gaps.longest)};
}

LoaderLine MakeLoaderLine(const LoaderWaits& loader, int64_t first_ns) {
  return {.count = loader.count,
          .total_ns = loader.total_ns,
          .idle_ns = loader.idle_ns,
          .longest = Since(first_ns, loader.longest)};
}

FullQueueLine MakeFullQueueLine(const FullQueue& queue, int64_t first_ns) {
  return {.count = queue.count, .blocked_ns = queue.blocked_ns, .longest = Since(first_ns, queue.longest)};
}

// Notes times without any event: how long they are together.
void AddUnrecorded(size_t trace, NoteKind kind, std::span<const TimeRange> ranges, std::vector<Note>& notes) {
  if (ranges.empty()) return;
  Note note{.trace = trace, .kind = kind, .count = LengthOf(ranges)};
  const TimeRange& longest =
      *std::ranges::max_element(ranges, {}, [](const TimeRange& range) { return LengthOf(range); });
  note.time = {static_cast<int64_t>(ranges.size()), longest.from_ns, longest.to_ns};
  notes.push_back(note);
}

}  // namespace

int64_t CountOutliers(const model::Sketch& sketch) {
  const int64_t first = sketch.Quantile(1, 4);
  const int64_t third = sketch.Quantile(3, 4);
  const int64_t median = sketch.Quantile(1, 2);
  const auto fence =
      std::max<Int128>(Int128{third} + 3 * (Int128{third} - first), Int128{median} + median / 2);
  constexpr Int128 kHighest = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(sketch.CountAbove(static_cast<int64_t>(std::min(fence, kHighest))));
}

TraceLine MakeTraceLine(const std::string& path, const importers::TraceInfo& info, const TraceState& state,
                        int64_t gpu_ahead_ns) {
  const TraceTotals& totals = state.totals();
  TraceLine line{.path = path, .format = importers::Name(info.format)};
  const model::Moments kernels = AllOf(state.kernels());
  line.kernels = kernels.count();
  line.kernel_ns = kernels.total();
  line.memcpys = Total(state.copies(), CountOf);
  line.memcpy_bytes = Total(state.copies(), BytesOf);
  line.memcpy_ns = Total(state.copies(), NanosOf);
  line.memsets = Total(state.sets(), CountOf);
  const model::Moments graphs = AllOf(state.graphs());
  line.graphs = graphs.count();
  line.graph_ns = graphs.total();
  line.api_calls = AllOf(state.calls()).count();
  line.ranges = totals.ranges;
  line.dropped = totals.Dropped();
  line.events = line.kernels + line.graphs + line.memcpys + line.memsets + line.api_calls + line.ranges +
                totals.others + line.dropped;
  Extent all = totals.on_host;
  if (!totals.on_gpu.IsEmpty())
    all.Cover(totals.on_gpu.first_ns - gpu_ahead_ns, totals.on_gpu.last_ns - gpu_ahead_ns);
  line.duration_ns = all.IsEmpty() ? 0 : all.last_ns - all.first_ns;
  return line;
}

void AddNotes(size_t trace, const importers::TraceInfo& info, const TraceState& state,
              std::vector<Note>& notes) {
  if (info.truncated) notes.push_back({trace, NoteKind::kTruncated, 1});
  AddUnrecorded(trace, NoteKind::kLeftOut, state.unrecorded().left_out, notes);
  AddUnrecorded(trace, NoteKind::kNoEvents, state.unrecorded().counted, notes);
  if (state.totals().skipped_shards > 0)
    notes.push_back({trace, NoteKind::kUnreadableParts, state.totals().skipped_shards});
  if (info.sampled_calls > 0) notes.push_back({trace, NoteKind::kSampledCalls, info.sampled_calls});
  if (info.possible_launchers > 0)
    notes.push_back({trace, NoteKind::kLaunchersUnknown, info.possible_launchers});
  if (state.totals().metric_texts > 0)
    notes.push_back({trace, NoteKind::kMetricsWithoutNumber, state.totals().metric_texts});
  if (state.totals().large_numbers > 0)
    notes.push_back({trace, NoteKind::kNumbersTooLarge, state.totals().large_numbers});
  if (const int64_t unknown = state.communication().without_communicator(); unknown > 0)
    notes.push_back({trace, NoteKind::kCommunicatorsUnknown, unknown});
  if (const int64_t beyond = state.communication().beyond_bound(); beyond > 0)
    notes.push_back({trace, NoteKind::kCommunicatorsBeyondBound, beyond});
  if (const int64_t invalid = state.messages().invalid(); invalid > 0)
    notes.push_back({trace, NoteKind::kMessageSizesInvalid, invalid});
  if (const int64_t beyond = state.messages().beyond_bound(); beyond > 0)
    notes.push_back({trace, NoteKind::kMessageSizesBeyondBound, beyond});
  if (const int64_t beyond = CountBeyondBound(state); beyond > 0)
    notes.push_back({trace, NoteKind::kNamesBeyondBound, beyond});
  for (size_t i = 0; i < state.totals().dropped.size(); ++i)
    if (const int64_t count = state.totals().dropped[i]; count > 0)
      notes.push_back({trace, NoteOf(static_cast<importers::Dropped>(i)), count});
}

DurationLine MakeDurationLine(std::string name, const Durations& durations) {
  const model::Moments& moments = durations.moments;
  const auto quantile = [&](uint32_t percent) {
    return std::clamp(durations.sketch.Quantile(percent, 100), moments.min(), moments.max());
  };
  return {.name = std::move(name),
          .count = moments.count(),
          .total_ns = moments.total(),
          .min_ns = moments.min(),
          .max_ns = moments.max(),
          .mean_ns = moments.Mean(),
          .stddev_ns = moments.StandardDeviation(),
          .p50_ns = quantile(50),
          .p90_ns = quantile(90),
          .p99_ns = quantile(99),
          .outliers = CountOutliers(durations.sketch)};
}

std::vector<DurationLine> MakeDurationLines(const NameTable& names, std::span<const Durations> durations) {
  std::vector<DurationLine> lines;
  for (uint32_t id = 0; id < durations.size(); ++id)
    if (durations[id].moments.count() > 0)
      lines.push_back(MakeDurationLine(std::string(names[id]), durations[id]));
  std::ranges::sort(lines, [](const DurationLine& a, const DurationLine& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
  return lines;
}

DistributionLine MakeDistributionLine(const DurationLine& kernel, const model::Sketch& sketch) {
  constexpr uint32_t kBins = 32;
  const uint32_t first = model::Sketch::BucketOf(kernel.min_ns);
  const uint32_t width = (model::Sketch::BucketOf(kernel.max_ns) - first) / kBins + 1;
  DistributionLine line{.name = kernel.name};
  sketch.ForEach([&](uint32_t bucket, uint64_t count) {
    const size_t bin = (bucket - first) / width;
    while (line.bins.size() <= bin) {
      const uint32_t low = first + static_cast<uint32_t>(line.bins.size()) * width;
      line.bins.push_back({model::Sketch::LowestOf(low), model::Sketch::LowestOf(low + width)});
    }
    line.bins[bin].count += static_cast<int64_t>(count);
  });
  return line;
}

std::vector<TransferLine> MakeTransferLines(const std::map<TransferKey, Transfers>& transfers) {
  std::vector<TransferLine> lines;
  for (const auto& [key, transfer] : transfers)
    lines.push_back({.kind = importers::Name(key.copy),
                     .source = importers::Name(key.source),
                     .target = importers::Name(key.target),
                     .bytes = transfer.bytes,
                     .durations = MakeDurationLine({}, transfer.durations)});
  std::ranges::stable_sort(lines, std::greater<>(),
                           [](const TransferLine& line) { return line.durations.total_ns; });
  return lines;
}

std::vector<OperatorLine> MakeOperatorLines(const OperatorTable& table) {
  constexpr size_t kKernels = 3;
  constexpr std::array kKinds = {std::string_view("operator"), std::string_view("module"),
                                 std::string_view("range")};
  std::vector<OperatorLine> lines;
  // Rows are by kind.
  for (const auto& [key, row] : table.rows()) {
    if (row.launches == 0) continue;
    OperatorLine line{.kind = kKinds[static_cast<size_t>(key.kind)],
                      .name = std::string(table.names()[key.name]),
                      .calls = row.calls,
                      .host_ns = row.host_ns,
                      .launches = row.launches,
                      .self_ns = row.self_ns,
                      .total_ns = row.total_ns,
                      .kernels = {}};
    std::vector<std::pair<uint32_t, OperatorKernel>> kernels(row.kernels.begin(), row.kernels.end());
    const size_t shown = std::min(kernels.size(), kKernels);
    std::ranges::partial_sort(
        kernels, kernels.begin() + static_cast<std::ptrdiff_t>(shown), {},
        [&table](const auto& one) { return std::tuple(-one.second.total_ns, table.names()[one.first]); });
    kernels.resize(shown);
    for (const auto& [name, sums] : kernels)
      line.kernels.push_back({std::string(table.names()[name]), sums.count, sums.total_ns});
    lines.push_back(std::move(line));
  }
  const auto rank = [&kKinds](const OperatorLine& line) {
    return std::tuple(std::ranges::find(kKinds, line.kind) - kKinds.begin(), -line.total_ns,
                      std::string_view(line.name));
  };
  std::ranges::sort(lines, {}, rank);
  return lines;
}

CriticalPathLine MakeCriticalPathLine(const JobRank& rank, const CriticalPath& path) {
  constexpr std::array kKinds = {
      std::string_view("compute"),     std::string_view("communication"), std::string_view("transfer"),
      std::string_view("graph"),       std::string_view("launch"),        std::string_view("gap"),
      std::string_view("stream_wait"), std::string_view("call"),          std::string_view("operator"),
      std::string_view("host"),        std::string_view("sync"),          std::string_view("rank_wait"),
      std::string_view("unknown")};
  static_assert(kKinds.size() == static_cast<size_t>(PathKind::kUnknown) + 1);
  CriticalPathLine line{.rank = rank.number,
                        .trace = rank.trace,
                        .number = path.number,
                        .slow = path.slow,
                        .begin_ns = path.begin_ns,
                        .end_ns = path.end_ns,
                        .parts = {}};
  for (const CriticalPath::Part& part : path.parts)
    line.parts.push_back({kKinds[static_cast<size_t>(part.kind)], part.name, part.count, part.total_ns});
  return line;
}

IdleLine MakeIdleLine(const IdleTime& idle) {
  return {.host_ns = idle.host_ns,
          .back_to_back_ns = idle.back_to_back_ns,
          .device_ns = idle.device_ns,
          .unknown_ns = idle.unknown_ns};
}

RankLine MakeRankLine(const JobRank& rank) {
  const RankResult& result = rank.result;
  const RankTimeline& timeline = result.timeline;
  return {.rank = rank.number,
          .trace = rank.trace,
          .process = importers::PidOf(result.key.process),
          .device = result.key.device,
          .events = timeline.events(),
          .first_ns = result.extent.first_ns,
          .span_ns = timeline.span_ns(),
          .left_out_ns = result.left_out_ns,
          .busy_ns = timeline.busy_ns(),
          .idle_ns = timeline.span_ns() - timeline.busy_ns(),
          .compute_ns = timeline.compute_ns(),
          .comm_ns = timeline.comm_ns(),
          .exposed_comm_ns = timeline.comm_ns() - timeline.overlap_ns(),
          .overlap_ns = timeline.overlap_ns(),
          .transfer_ns = timeline.transfer_ns(),
          .transfer_overlap_ns = timeline.transfer_overlap_ns(),
          .graph_ns = timeline.graph_ns(),
          .idle = MakeIdleLine(timeline.idle()),
          .gaps = MakeIdleLine(timeline.stream_gaps()),
          .host_gaps = MakeHostGapsLine(result.host_gaps, result.extent.first_ns),
          .loader = MakeLoaderLine(result.loader, result.extent.first_ns),
          .full_queue = MakeFullQueueLine(result.full_queue, result.extent.first_ns),
          .blocking_sets = {result.blocking_sets.count, result.blocking_sets.call_ns,
                            result.blocking_sets.set_ns},
          .busy_windows_ns = result.busy_windows_ns,
          .launch_latency = MakeDurationLine({}, timeline.launch_latency()),
          .queue_delay = MakeDurationLine({}, timeline.queue_delay()),
          .queue_max = result.queue.max(),
          .queue_mean = result.queue.MeanOverChanges(),
          .queue_time_mean = result.queue.MeanOverTime()};
}

}  // namespace gpusonde::analyze
