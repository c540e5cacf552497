// SPDX-License-Identifier: Apache-2.0
#include "agent/live_agent.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "agent/collector.h"
#include "agent/diagnostician.h"
#include "agent/gpu_monitor.h"
#include "base/disk.h"
#include "base/log.h"
#include "base/time.h"
#include "spool/spool.h"

namespace gpusonde::agent {
namespace {

// Rounds take about a second; a flush of a program with GPU work, every 250 ms, ends one.
constexpr int kMinRoundMs = 900, kRoundMs = 1100;
// For names and lines of what was sampled last, when it ends and when the clock steps.
constexpr int64_t kFinishNs = kNanosPerSecond / 2;
constexpr int64_t kDayNs = 86'400 * kNanosPerSecond;
// Small, so that segments are soon deleted after the sink has ingested them.
constexpr int64_t kSegmentBytes = int64_t{8} << 20;
// Frames read from the spool at once while catching up; a frame has at most some hundred kB.
constexpr size_t kFramesAtOnce = 64;

Result<Collector> StartCollector(const LiveAgent::Options& options, int64_t epoch_offset_ns,
                                 std::shared_ptr<DeviceTable> devices) {
  return Collector::Create({.frequency_hz = options.frequency_hz,
                            .every_process = true,
                            .command = "",
                            .epoch_offset_ns = epoch_offset_ns,
                            .devices = std::move(devices),
                            .lines = options.lines,
                            .files = options.files});
}

std::function<bool()> NoLongerThan(int64_t wait_ns) {
  return [until_ns = MonotonicNow() + wait_ns] { return MonotonicNow() < until_ns; };
}

void LogIncident(const diagnose::Report& report) {
  LogWarn("{}{} {}", report.process_name, report.incident.end_ns.has_value() ? " (ended):" : ":",
          report.incident.sentence);
}

}  // namespace

struct LiveAgent::State {
  Options options;
  Sink& sink;
  spool::Writer spool;
  std::shared_ptr<DeviceTable> devices;
  Collector collector;
  std::optional<GpuMonitor> gpus;
  std::optional<Diagnostician> diagnostician;
  int64_t epoch_offset_ns;
  int64_t day = (MonotonicNow() + epoch_offset_ns) / kDayNs;
  int64_t ingested = 0;   // the last frame that the sink has ingested
  int64_t committed = 0;  // the last of those that it has made durable
  // The frames spooled in this round, consecutive from `fresh_first` on.
  std::vector<model::Batch> fresh;
  int64_t fresh_first = 0;
  std::string last_trouble;

  bool behind() const { return ingested < spool.last_sequence(); }
  Status Gather();
  Status SendAll();
  Status CatchUp();
  Status SendToSink(std::vector<model::Batch> frames);
  Status DropCommitted();
  void Spool(std::vector<model::Batch> batches);
  void LogTrouble(const Error& error);
  Status FollowClock();
};

LiveAgent::LiveAgent(std::unique_ptr<State> state) : state_(std::move(state)) {}
LiveAgent::LiveAgent(LiveAgent&&) noexcept = default;
LiveAgent& LiveAgent::operator=(LiveAgent&&) noexcept = default;
LiveAgent::~LiveAgent() = default;

Result<LiveAgent> LiveAgent::Create(const Options& options, Sink& sink) {
  ASSIGN_OR_RETURN(spool::Writer spool,
                   spool::Writer::Open(options.spool_folder, {.segment_bytes = kSegmentBytes}));
  const int64_t epoch_offset_ns = options.measure_epoch_offset();
  const auto devices = std::make_shared<DeviceTable>();
  ASSIGN_OR_RETURN(Collector collector, StartCollector(options, epoch_offset_ns, devices));
  std::optional<GpuMonitor> gpus;
  if (options.nvml_hz > 0) gpus = GpuMonitor::Start({.frequency_hz = options.nvml_hz}, devices);
  if (gpus.has_value()) gpus->SetSource(collector.source(), epoch_offset_ns);
  std::optional<Diagnostician> diagnostician;
  if (options.diagnose)
    diagnostician.emplace(
        Diagnostician::Options{.source = collector.source(),
                               .epoch_offset_ns = epoch_offset_ns,
                               .on_incident =
                                   [report_incident = options.on_incident](const diagnose::Report& report) {
                                     LogIncident(report);
                                     report_incident(report);
                                   },
                               .on_warning =
                                   [report_warning = options.on_warning](const model::Warning& warning) {
                                     LogWarn("leading indicator: {}", warning.sentence);
                                     report_warning(warning);
                                   }});
  std::unique_ptr<State> state(new State{options, sink, std::move(spool), devices, std::move(collector),
                                         std::move(gpus), std::move(diagnostician), epoch_offset_ns});
  ASSIGN_OR_RETURN(state->committed, sink.CommittedThrough(state->spool.id()));
  state->ingested = state->committed;
  TRY(state->SendAll());
  if (state->diagnostician.has_value()) state->diagnostician->Recall(options.recall);
  return LiveAgent(std::move(state));
}

Status LiveAgent::Round() {
  State& state = *state_;
  state.collector.Wait(kMinRoundMs, kRoundMs);
  TRY(state.FollowClock());
  TRY(state.Gather());
  if (const Status sent = state.SendAll(); !sent.has_value()) state.LogTrouble(sent.error());
  return {};
}

Status LiveAgent::Finish() {
  State& state = *state_;
  if (state.gpus.has_value()) state.gpus->RequestStop();
  ASSIGN_OR_RETURN(std::vector<model::Batch> last, state.collector.Finish(NoLongerThan(kFinishNs)));
  std::vector<model::Batch> batches;
  if (state.gpus.has_value()) batches = state.gpus->Finish();
  std::ranges::move(last, std::back_inserter(batches));
  if (state.diagnostician.has_value())
    std::ranges::move(state.diagnostician->Finish(batches), std::back_inserter(batches));
  state.Spool(std::move(batches));
  TRY(state.SendAll());
  TRY(state.sink.Flush());
  return state.DropCommitted();
}

Status LiveAgent::State::Gather() {
  std::vector<model::Batch> batches;
  if (gpus.has_value()) batches = gpus->Poll();
  ASSIGN_OR_RETURN(std::vector<model::Batch> profiled, collector.Poll());
  std::ranges::move(profiled, std::back_inserter(batches));
  if (diagnostician.has_value())
    std::ranges::move(diagnostician->Round(batches), std::back_inserter(batches));
  Spool(std::move(batches));
  return {};
}

// After a step of the wall clock, times belong to a new source with its own offset. After midnight (UTC), all
// names are repeated, so that the file of each day can be read by itself.
Status LiveAgent::State::FollowClock() {
  const int64_t offset = options.measure_epoch_offset();
  if (std::abs(offset - epoch_offset_ns) > kClockStepNs) {
    LogWarn("the wall clock stepped by {} ms; starting a new source",
            (offset - epoch_offset_ns) / kNanosPerMilli);
    if (gpus.has_value()) Spool(gpus->Poll());
    ASSIGN_OR_RETURN(std::vector<model::Batch> last, collector.Finish(NoLongerThan(kFinishNs)));
    Spool(std::move(last));
    ASSIGN_OR_RETURN(collector, StartCollector(options, offset, devices));
    if (gpus.has_value()) gpus->SetSource(collector.source(), offset);
    if (diagnostician.has_value()) Spool(diagnostician->SetSource(collector.source(), offset));
    epoch_offset_ns = offset;
  }
  const int64_t today = (MonotonicNow() + epoch_offset_ns) / kDayNs;
  if (today == day) return {};
  TRY(SendAll());  // the rest belongs to the previous day
  day = today;
  collector.Rewrite();
  if (gpus.has_value()) gpus->Rewrite();
  if (diagnostician.has_value()) diagnostician->Rewrite();
  return {};
}

void LiveAgent::State::Spool(std::vector<model::Batch> batches) {
  const Status disk = CheckDiskRoom(options.spool_folder, options.min_free_bytes);
  if (!disk.has_value()) LogTrouble(disk.error());
  const int64_t room = std::max<int64_t>(options.max_waiting_frames - (spool.last_sequence() - committed), 0);
  const auto fitting =
      disk.has_value() ? static_cast<size_t>(std::min<int64_t>(room, std::ssize(batches))) : 0;
  const spool::Writer::Stored stored = spool.Store(std::span(batches).first(fitting));
  if (stored.failure.has_value()) LogTrouble(*stored.failure);
  int64_t failed_rows = stored.lost_rows;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (i >= fitting) {
      failed_rows += static_cast<int64_t>(batches[i].rows);
    } else if (stored.sequences[i] != 0) {
      if (fresh.empty()) fresh_first = stored.sequences[i];
      fresh.push_back(std::move(batches[i]));
    }
  }
  if (disk.has_value() && fitting < batches.size())
    LogTrouble({ErrorCode::kOutOfSpace,
                "Dropping data: the spool is full because the store has refused data for too long"});
  if (failed_rows == 0) return;
  collector.CountFailedRows(failed_rows);
  collector.Rewrite();
  if (gpus.has_value()) gpus->Rewrite();
  if (diagnostician.has_value()) diagnostician->Rewrite();
}

// Frames spooled in this round are still in memory; frames that the sink refused earlier, or that an earlier
// run left, are read back from the spool.
Status LiveAgent::State::SendAll() {
  std::vector<model::Batch> frames = std::exchange(fresh, {});
  if (!behind()) return {};
  if (!frames.empty() && fresh_first == ingested + 1)
    TRY(SendToSink(std::move(frames)));
  else
    TRY(CatchUp());
  if (!std::exchange(last_trouble, {}).empty()) options.on_trouble({});
  return DropCommitted();
}

Status LiveAgent::State::CatchUp() {
  std::vector<model::Batch> frames;
  const auto send = [&]() -> Status {
    return frames.empty() ? Status() : SendToSink(std::exchange(frames, {}));
  };
  const auto read =
      spool::Read(options.spool_folder, ingested, [&](int64_t, const model::Batch& batch) -> Status {
        frames.push_back(batch);
        return frames.size() < kFramesAtOnce ? Status() : send();
      });
  if (!read.has_value()) return Fail(read.error());
  return send();
}

// Sends the frames that follow the last ingested one to the sink.
Status LiveAgent::State::SendToSink(std::vector<model::Batch> frames) {
  const auto count = std::ssize(frames);
  TRY(sink.Ingest(spool.id(), day, ingested + 1, std::move(frames)));
  ingested += count;
  return {};
}

Status LiveAgent::State::DropCommitted() {
  ASSIGN_OR_RETURN(committed, sink.CommittedThrough(spool.id()));
  return spool.DropThrough(committed);
}

// Logs a problem once, however many rounds it lasts.
void LiveAgent::State::LogTrouble(const Error& error) {
  if (error.message == last_trouble) return;
  last_trouble = error.message;
  LogError("{}", error.message);
  options.on_trouble(error.message);
}

}  // namespace gpusonde::agent
