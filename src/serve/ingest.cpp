// SPDX-License-Identifier: Apache-2.0
#include "serve/ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/time_range.h"
#include "model/column.h"
#include "model/enums.h"
#include "model/schema.h"
#include "model/tables/kernel_windows.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "serve/earlier_runs.h"
#include "server/metrics_server.h"
#include "server/query_parameters.h"
#include "spool/host_name.h"
#include "spool/upload.h"
#include "store/rollups/windows.h"
#include "usage/hours.h"

namespace gpusonde::serve {
namespace {

constexpr std::string_view kPath = "/api/v1/frames";
constexpr int64_t kWatchedPauseMs = 1000;

// Of a frame; an agent's has a second's. The store fills the columns that a frame lacks: one column of a byte
// a row would become hundreds of times as much.
constexpr size_t kMaxRows = 1'000'000;

// Tables that only the store writes: rows of an agent would spoil its bookkeeping.
constexpr std::array kOwnTables = {"batches", "device_windows", "meta", "profile_windows"};

// Agents sum the GPU work whose records they have lost; the store's own sums are the other parts.
Status CheckSums(const model::Batch& batch) {
  const model::Column part(batch, "part");
  for (size_t row = 0; row < batch.rows; ++row)
    if (part.Text(row) != model::EnumNames<model::WorkPart>::Name(model::WorkPart::kLost))
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("agents send no rows of {} but those of lost records", batch.table));
  return {};
}

// Checks that the store can append the batch: DuckDB's state is in doubt after a failure, so that a malformed
// batch must not reach it. Errors: kCorrupt.
Status CheckRows(const model::Batch& batch) {
  if (std::ranges::find(kOwnTables, batch.table) != kOwnTables.end())
    return Fail(ErrorCode::kCorrupt, fmt::format("agents don't send rows of {}", batch.table));
  if (batch.rows > kMaxRows)
    return Fail(ErrorCode::kCorrupt, fmt::format("a frame has {} rows of {}, at most {} are accepted",
                                                 batch.rows, batch.table, kMaxRows));
  TRY(model::CheckAgainstSchema(batch));
  return batch.table == model::kKernelWindows.name() ? CheckSums(batch) : Status();
}

struct Frames {
  std::string host;
  Id128 spool;
  int64_t day = 0;
  int64_t first = 0;
  std::vector<model::Batch> batches;
};

template <class T>
Result<T> Required(Result<std::optional<T>> value, std::string_view name) {
  ASSIGN_OR_RETURN(std::optional<T> given, std::move(value));
  if (given.has_value()) return *std::move(given);
  return Fail(ErrorCode::kInvalidArgument, fmt::format("parameter '{}' is missing", name));
}

// All but the batches.
Result<Frames> ParseParameters(const server::HttpRequest& request) {
  ASSIGN_OR_RETURN(server::QueryParameters parameters, server::QueryParameters::Create(request.query));
  Frames frames{.host = std::string(parameters.TakeText("host").value_or("")), .spool = {}, .batches = {}};
  TRY(spool::CheckHostName(frames.host));
  ASSIGN_OR_RETURN(frames.spool, Required(parameters.TakeId("spool"), "spool"));
  // A million days: 4707, and far from where arithmetic overflows.
  ASSIGN_OR_RETURN(frames.day, Required(parameters.TakeInteger("day", 0, 1'000'000), "day"));
  ASSIGN_OR_RETURN(frames.first, Required(parameters.TakeInteger("first", 1, int64_t{1} << 60), "first"));
  TRY(parameters.Finish());
  return frames;
}

Result<std::vector<model::Batch>> ParseBody(std::string_view body) {
  ASSIGN_OR_RETURN(std::vector<model::Batch> batches, spool::DecodeUpload(body));
  for (const model::Batch& batch : batches) TRY(CheckRows(batch));
  return batches;
}

// The latest time in a column of a table's rows; nullopt without rows.
std::optional<int64_t> NewestTime(std::span<const model::Batch> batches, std::string_view table,
                                  std::string_view column) {
  std::optional<TimeRange> times;
  for (const model::Batch& batch : batches)
    if (batch.table == table) store::Widen(batch, column, times);
  return times.transform([](const TimeRange& range) { return range.to_ns; });
}

struct Answer {
  int64_t committed = 0;
  bool repeat_names = false;  // frames before these are not here
  int64_t pause_ms = Pace::kMinPauseMs;
};

Result<Answer> Store(Hosts& hosts, Frames frames, int64_t epoch_now_ns) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Host> host, hosts.FindOrMake(frames.host));
  TRY(host->Claim(frames.spool, MonotonicNow()));
  ASSIGN_OR_RETURN(store::LiveStore* const store, host->Store());
  Answer answer;
  if (!frames.batches.empty()) {
    const int64_t begin_ns = MonotonicNow();
    const store::Day day{std::chrono::days(frames.day)};
    TRY(store->Commit(day, frames.spool, frames.first, frames.batches));
    // Also at midnight, when agents repeat the row of their run.
    if (const auto run_ns = NewestTime(frames.batches, model::kSources.name(), "started_ns");
        run_ns.has_value())
      if (const Status ended = EndWhatEarlierRunsLeft(*store, day, *run_ns); !ended.has_value())
        LogWarn("incidents that an earlier run of the agent of {} left open stay open until midnight: {}",
                host->name(), ended.error().message);
    answer.repeat_names = store->TakeGap();
    hosts.pace().Add(MonotonicNow() - begin_ns);
    host->AddUsageChange(usage::ChangedFrom(frames.batches));
    host->SetLastSeen(epoch_now_ns);
    // Times are untrusted: their difference may not fit.
    int64_t age_ns = 0;
    if (const auto newest_ns = NewestTime(frames.batches, model::kSamples.name(), "time_ns");
        newest_ns.has_value() && !__builtin_sub_overflow(epoch_now_ns, *newest_ns, &age_ns))
      host->SetSpoolAge(age_ns);
  }
  answer.committed = store->CommittedThrough(frames.spool);
  answer.pause_ms = host->IsWatched(MonotonicNow()) ? kWatchedPauseMs : hosts.pace().PauseMs(hosts.Agents());
  return answer;
}

std::string ToJson(const Answer& answer) {
  JsonWriter json;
  json.BeginObject().Field("committed", answer.committed);
  json.Field("repeat_names", int64_t{answer.repeat_names}).Field("pause_ms", answer.pause_ms).EndObject();
  return json.Take();
}

// An agent drops frames that are answered with 400 and sends all others again.
server::HttpResponse Refuse(int status, const Error& error, const std::string& host, const Id128& spool,
                            IngestCounts& counts) {
  ++(status == 400 ? counts.refused : counts.turned_away);
  LogWarn("refused frames of {}: {}", host.empty() ? "an agent" : host, Printable(error.message));
  if (!host.empty())
    counts.refusals.Add(host, Printable(error.message), MonotonicNow(), status == 400 ? Id128() : spool);
  return server::ErrorResponse(status, error);
}

server::HttpResponse Ingest(Hosts& hosts, IngestCounts& counts, const server::HttpRequest& request,
                            int64_t epoch_now_ns) {
  if (request.path != kPath)
    return server::ErrorResponse(404, {ErrorCode::kNotFound, fmt::format("agents send to {}", kPath)});
  Result<Frames> frames = ParseParameters(request);
  if (!frames.has_value()) return Refuse(400, frames.error(), {}, {}, counts);
  const std::string host = frames->host;
  const Id128 spool = frames->spool;
  // Either clock may be wrong. Without frames there are no rows of a wrong day.
  const int64_t today = store::DayOf(epoch_now_ns).time_since_epoch().count();
  if (!request.body.empty() && !spool::IsPlausibleDay(frames->day, today))
    return Refuse(409,
                  {ErrorCode::kUnavailable,
                   fmt::format("the rows are of {} by the agent's clock, and the server's says {}; correct "
                               "the wrong one",
                               spool::FormatDay(frames->day), spool::FormatDay(today))},
                  host, spool, counts);
  Result<std::vector<model::Batch>> batches = ParseBody(request.body);
  if (!batches.has_value()) return Refuse(400, batches.error(), host, spool, counts);
  frames->batches = *std::move(batches);
  const auto count = std::ssize(frames->batches);
  const Result<Answer> answer = Store(hosts, *std::move(frames), epoch_now_ns);
  if (!answer.has_value()) return Refuse(503, answer.error(), host, spool, counts);
  if (count > 0) counts.refusals.ForgetStored(host, spool);
  ++counts.requests;
  counts.frames += count;
  counts.bytes += std::ssize(request.body);
  return server::JsonResponse(ToJson(*answer));
}

}  // namespace

server::HttpRoutes IngestRoutes(Hosts& hosts, IngestCounts& counts, std::function<int64_t()> epoch_now) {
  const auto not_here = [](const server::HttpRequest& request) {
    return server::ErrorResponse(
        {ErrorCode::kNotFound,
         fmt::format("there is no '{}' here, only POST {}, /healthz and /readyz", request.path, kPath)});
  };
  return {.api =
              [&hosts, not_here](const server::HttpRequest& request) {
                if (request.path != "/readyz") return not_here(request);
                if (const Status room = hosts.CheckRoom(); !room.has_value())
                  return server::ErrorResponse(503, room.error());
                return server::PlainResponse("ready\n");
              },
          .files = server::AnsweringHealth(not_here),
          .uploads =
              [&hosts, &counts, epoch_now = std::move(epoch_now)](const server::HttpRequest& request) {
                return Ingest(hosts, counts, request, epoch_now());
              }};
}

}  // namespace gpusonde::serve
