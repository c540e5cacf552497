// SPDX-License-Identifier: Apache-2.0
#include "agent/live_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "agent/engine.h"
#include "base/disk.h"
#include "base/log.h"
#include "base/problem_log.h"
#include "base/time.h"
#include "model/drops.h"
#include "spool/spool.h"

namespace gpusonde::agent {
namespace {

// Rounds take about a second; a flush of a program with GPU work, every 250 ms, ends one.
constexpr int kMinRoundMs = 900, kRoundMs = 1100;
// How long to wait for the names and lines of the last samples, at the end and when the clock steps.
constexpr int64_t kFinishNs = kNanosPerSecond / 2;
// Frames read from the spool at once while catching up; a frame has at most some hundred kB.
constexpr size_t kFramesAtOnce = 64;

std::function<bool()> NoLongerThan(int64_t wait_ns) {
  return [until_ns = MonotonicNow() + wait_ns] { return MonotonicNow() < until_ns; };
}

void LogIncident(const diagnose::Report& report) {
  std::string_view state = ":";
  if (report.incident.withdrawn)
    state = ", incident withdrawn, as it was too small or short to tell from chance:";
  else if (report.incident.end_ns.has_value())
    state = ", incident ended:";
  LogWarn("{} ({}){} {}", report.process_name, report.pid, state, report.incident.sentence);
}

}  // namespace

struct LiveAgent::State {
  Options options;
  Sink& sink;
  Engine engine;
  // The first frame of a UTC day, in whole days since the epoch.
  struct DayBegin {
    int64_t first_frame = 0;
    int64_t day = 0;
  };
  std::deque<DayBegin> days = {{0, Today()}};  // rising; frames before the first belong to its day too
  int64_t run_begin = 0;                       // the last frame of earlier runs
  int64_t skip_to = 0;                         // Sink::Loss::skip_to, until that is done
  bool spool_is_damaged = false;               // until it is begun anew
  int64_t ingested = 0;                        // the last frame that the sink has ingested
  int64_t committed = 0;                       // the last of those that it has made durable
  // The frames spooled in this round, consecutive from `fresh_first` on.
  std::vector<model::Batch> fresh;
  int64_t fresh_first = 0;
  ProblemLog problem;

  int64_t Today() const { return (MonotonicNow() + engine.epoch_offset_ns()) / kNanosPerDay; }
  bool behind() { return ingested < engine.spool().last_sequence(); }
  bool behind_durable() { return committed < engine.spool().last_sequence(); }
  Status SendAll();
  Status CatchUp();
  Status SendToSink(std::vector<model::Batch> frames);
  Status ReadCommitted();
  Status DropCommitted();
  Status CheckRoom();
  size_t RoomForFrames();
  void Spool(std::vector<model::Batch> batches);
  void LogProblem(const Error& error);
  Status FollowClock();
  void CountLoss(const Sink::Loss& loss);
  Status Skip();
  Status BeginSpoolAnew();
};

LiveAgent::LiveAgent(std::unique_ptr<State> state) : state_(std::move(state)) {}
LiveAgent::LiveAgent(LiveAgent&&) noexcept = default;
LiveAgent& LiveAgent::operator=(LiveAgent&&) noexcept = default;
LiveAgent::~LiveAgent() = default;

Result<LiveAgent> LiveAgent::Create(const Options& options, Sink& sink) {
  ASSIGN_OR_RETURN(const std::optional<Error> damage, spool::SetAsideIfDamaged(options.spool_folder));
  if (damage.has_value())
    LogError("{}; it was set aside in {}: what it held and was not stored elsewhere yet is lost",
             damage->message, spool::DamagedFolderOf(options.spool_folder));
  ASSIGN_OR_RETURN(
      Engine engine,
      Engine::Create({.spool_folder = options.spool_folder,
                      .spool = {.segment_bytes = options.segment_bytes},
                      .frequency_hz = options.frequency_hz,
                      .nvml_hz = options.nvml_hz,
                      .every_process = true,
                      .overhead = options.overhead,
                      .host = options.host,
                      .diagnose = options.diagnose,
                      .ends_incidents = options.recall == nullptr,
                      .pod_watcher = options.pod_watcher,
                      .lines = options.lines,
                      .files = options.files,
                      .on_incident =
                          [report_incident = options.on_incident](const diagnose::Report& report) {
                            LogIncident(report);
                            report_incident(report);
                          },
                      .on_warning =
                          [report_warning = options.on_warning](const model::Warning& warning) {
                            LogWarn("leading indicator: {}", warning.sentence);
                            report_warning(warning);
                          },
                      .measure_epoch_offset = options.measure_epoch_offset}));
  engine.StartGpuMonitor();
  engine.StartPodWatcher();
  std::unique_ptr<State> state(new State{options, sink, std::move(engine)});
  const spool::Writer& spool = state->engine.spool();
  TRY(state->ReadCommitted());
  ASSIGN_OR_RETURN(state->ingested,
                   sink.IngestedThrough(spool.id(), state->days.front().day, spool.last_sequence()));
  state->run_begin = spool.last_sequence();
  state->skip_to = state->ingested;
  TRY(state->Skip());
  if (const Status sent = state->SendAll(); !sent.has_value()) state->LogProblem(sent.error());
  if (options.recall != nullptr) state->engine.Recall(options.recall);
  return LiveAgent(std::move(state));
}

Status LiveAgent::Round() {
  State& state = *state_;
  state.engine.collector().Wait(kMinRoundMs, kRoundMs);
  TRY(state.FollowClock());
  state.CountLoss(state.sink.TakeLoss());
  if (const Status skipped = state.Skip(); !skipped.has_value()) state.LogProblem(skipped.error());
  if (const Status anew = state.BeginSpoolAnew(); !anew.has_value()) state.LogProblem(anew.error());
  ASSIGN_OR_RETURN(std::vector<model::Batch> batches, state.engine.Gather());
  state.Spool(std::move(batches));
  if (const Status sent = state.SendAll(); !sent.has_value()) state.LogProblem(sent.error());
  return {};
}

Status LiveAgent::Finish() {
  State& state = *state_;
  ASSIGN_OR_RETURN(std::vector<model::Batch> last, state.engine.Finish(NoLongerThan(kFinishNs)));
  state.Spool(std::move(last));
  TRY(state.SendAll());
  TRY(state.sink.Flush());
  return state.DropCommitted();
}

// After a step of the wall clock, times belong to a new source with its own offset. After midnight (UTC), all
// names are repeated, so that the file of each day can be read by itself. Frames that the sink has yet to
// accept keep their day.
Status LiveAgent::State::FollowClock() {
  if (const int64_t step_ns = engine.MeasureClockStep(); step_ns != 0) {
    LogWarn("the wall clock stepped by {:+.1f} s; starting a new source", static_cast<double>(step_ns) / 1e9);
    TRY(engine.BeginSource(NoLongerThan(kFinishNs),
                           [this](std::vector<model::Batch> batches) { Spool(std::move(batches)); }));
  }
  const int64_t today = Today();
  if (today == days.back().day) return {};
  days.push_back({engine.spool().last_sequence() + 1, today});
  engine.Rewrite();
  return {};
}

void LiveAgent::State::CountLoss(const Sink::Loss& loss) {
  skip_to = std::max(skip_to, loss.skip_to);
  spool_is_damaged = spool_is_damaged || loss.spool;
  if (loss.rows == 0 && !loss.names) return;
  engine.collector().CountLostRows(model::DropReason::kServerRefused, loss.rows);
  engine.Rewrite();
}

// Handles a spool that lost its end, as after a power cut on a disk that ignores fsync, or that was restored
// from a snapshot. The sink already has frames with the next numbers, and would take those of this run for
// repeated ones, so their numbers are skipped.
Status LiveAgent::State::Skip() {
  if (skip_to <= engine.spool().last_sequence()) return {};
  LogWarn("the spool in {} is older than what was sent from it: it ends with frame {}, and {} are stored",
          options.spool_folder, engine.spool().last_sequence(), skip_to);
  int64_t rows = 0;
  TRY(spool::Read(options.spool_folder, run_begin, [&](int64_t, const model::Batch& batch) {
    rows += static_cast<int64_t>(batch.rows);
    return Status();
  }));
  TRY(engine.spool().SkipTo(skip_to));
  CountLoss({.rows = rows, .names = rows > 0});
  ingested = skip_to;
  fresh.clear();
  return ReadCommitted();
}

// Frames behind a damaged one can't be read, nor could those that come next.
Status LiveAgent::State::BeginSpoolAnew() {
  if (!spool_is_damaged) return {};
  TRY(engine.spool().SkipTo(engine.spool().last_sequence()));
  spool_is_damaged = false;
  ingested = engine.spool().last_sequence();
  fresh.clear();
  engine.Rewrite();
  return ReadCommitted();
}

Status LiveAgent::State::CheckRoom() {
  TRY(CheckDiskRoom(options.spool_folder, options.min_free_bytes));
  // The last segment is never deleted, though the sink may have all of it.
  if (options.max_spool_bytes == 0 || !behind_durable()) return {};
  ASSIGN_OR_RETURN(const int64_t bytes, spool::StoredBytes(options.spool_folder));
  if (bytes < options.max_spool_bytes) return {};
  return Fail(ErrorCode::kOutOfSpace,
              fmt::format("Dropping data: the spool holds {} MB that are not stored elsewhere yet, its limit",
                          bytes / 1'000'000));
}

// How many more frames may wait for the sink.
size_t LiveAgent::State::RoomForFrames() {
  if (options.max_spool_bytes > 0) return std::numeric_limits<size_t>::max();
  const int64_t waiting = engine.spool().last_sequence() - committed;
  return static_cast<size_t>(std::max<int64_t>(options.max_waiting_frames - waiting, 0));
}

void LiveAgent::State::Spool(std::vector<model::Batch> batches) {
  options.on_rows(batches);
  const Status disk = CheckRoom();
  if (!disk.has_value()) LogProblem(disk.error());
  const size_t room = disk.has_value() ? RoomForFrames() : 0;
  const spool::Writer::Stored stored = engine.Spool(batches, room);
  if (stored.failure.has_value()) LogProblem(*stored.failure);
  for (size_t i = 0; i < stored.sequences.size(); ++i) {
    if (stored.sequences[i] == 0) continue;
    if (fresh.empty()) fresh_first = stored.sequences[i];
    fresh.push_back(std::move(batches[i]));
  }
  if (disk.has_value() && room < batches.size())
    LogProblem({ErrorCode::kOutOfSpace,
                "Dropping data: the spool is full because the store has refused data for too long"});
}

// Frames spooled in this round are still in memory; frames that the sink refused earlier, or that an earlier
// run left, are read back from the spool.
Status LiveAgent::State::SendAll() {
  std::vector<model::Batch> frames = std::exchange(fresh, {});
  // A sink that reads the spool itself makes more of it durable meanwhile: room where the spool was full.
  if (!behind()) return DropCommitted();
  if (!frames.empty() && fresh_first == ingested + 1)
    TRY(SendToSink(std::move(frames)));
  else
    TRY(CatchUp());
  if (problem.Set({}) == ProblemLog::Change::kEnded) options.on_problem({});
  return DropCommitted();
}

Status LiveAgent::State::CatchUp() {
  std::vector<model::Batch> frames;
  Status sent;
  const auto send = [&]() -> Status {
    if (!frames.empty()) sent = SendToSink(std::exchange(frames, {}));
    return sent;
  };
  const auto read =
      spool::Read(options.spool_folder, ingested, [&](int64_t, const model::Batch& batch) -> Status {
        frames.push_back(batch);
        return frames.size() < kFramesAtOnce ? Status() : send();
      });
  if (!sent.has_value()) return sent;
  TRY(send());
  if (read.has_value()) return {};
  if (read.error().code != ErrorCode::kCorrupt) return Fail(read.error());
  LogError("{}; it and what follows it in the spool are lost", read.error().message);
  spool_is_damaged = true;
  return BeginSpoolAnew();
}

// Sends the frames that follow the last ingested one to the sink, a day's frames at a time.
Status LiveAgent::State::SendToSink(std::vector<model::Batch> frames) {
  for (auto next = frames.begin(); next != frames.end();) {
    while (days.size() > 1 && days[1].first_frame <= ingested + 1) days.pop_front();
    const int64_t left = frames.end() - next;
    const int64_t count = days.size() > 1 ? std::min(left, days[1].first_frame - ingested - 1) : left;
    const auto last = next + count;
    TRY(sink.Ingest(engine.spool().id(), days.front().day, ingested + 1,
                    {std::move_iterator(next), std::move_iterator(last)}));
    ingested += count;
    next = last;
  }
  return {};
}

// Frames that are no longer in the spool are durable, even if the sink has yet to learn that from its server.
Status LiveAgent::State::ReadCommitted() {
  ASSIGN_OR_RETURN(const int64_t durable, sink.CommittedThrough(engine.spool().id()));
  committed = std::max(durable, engine.spool().first_sequence() - 1);
  return {};
}

Status LiveAgent::State::DropCommitted() {
  TRY(ReadCommitted());
  return engine.spool().DropThrough(committed);
}

// Logs a problem once, however many rounds it lasts.
void LiveAgent::State::LogProblem(const Error& error) {
  if (problem.Set(error.message) == ProblemLog::Change::kNone) return;
  LogError("{}", error.message);
  options.on_problem(error.message);
}

}  // namespace gpusonde::agent
