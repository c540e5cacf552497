// SPDX-License-Identifier: Apache-2.0
#include "server/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/id128.h"
#include "base/time.h"
#include "exporters/exporter.h"
#include "server/api_json.h"
#include "server/compare_selections.h"
#include "server/flame_tree.h"
#include "server/gpu_facts.h"
#include "server/incidents_json.h"
#include "server/line_times.h"
#include "server/polled_data.h"
#include "server/profile_question.h"
#include "server/query_parameters.h"
#include "server/revision_pacer.h"
#include "server/tracks_json.h"
#include "server/usage_question.h"

namespace gpusonde::server {
namespace {

constexpr int64_t kMaxBuckets = 2000;
constexpr int64_t kDefaultBuckets = 600;
constexpr int64_t kMaxColumns = 8000;

// Wraps an error of the data. Parameters are checked before, so an invalid argument there is a bug of this
// program.
template <class T>
Result<T> Answer(Result<T> result) {
  if (!result.has_value() && result.error().code == ErrorCode::kInvalidArgument)
    result.error().code = ErrorCode::kInternal;
  return result;
}

Result<std::string> GetOverview(ApiData& data, const ApiFacts& facts, QueryParameters& parameters) {
  TRY(parameters.Finish());
  ASSIGN_OR_RETURN(const store::Overview overview, Answer(data.ReadOverview()));
  return OverviewJson(overview, facts);
}

Result<std::string> GetStrips(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const auto buckets, parameters.TakeInteger("buckets", 1, kMaxBuckets));
  ASSIGN_OR_RETURN(const bool with_metrics, parameters.TakeFlag("metrics"));
  ASSIGN_OR_RETURN(const model::Selection selection, parameters.TakeSelection());
  TRY(parameters.Finish());
  ASSIGN_OR_RETURN(const auto sources, Answer(data.ReadSources()));
  const int count = static_cast<int>(buckets.value_or(kDefaultBuckets));
  ASSIGN_OR_RETURN(const store::Strip cpu, Answer(data.ReadCpuStrip(selection, count)));
  AllStrips strips{.cpu = cpu, .cpus = CpusOf(sources)};
  ASSIGN_OR_RETURN(strips.gpus, Answer(data.ReadGpuStrips(selection, count)));
  ASSIGN_OR_RETURN(strips.marks, Answer(data.ReadDeviceMarks(selection, count)));
  if (with_metrics) {
    ASSIGN_OR_RETURN(strips.metrics, Answer(data.ReadMetricStrips(selection, count)));
  }
  return StripsJson(strips);
}

Result<std::string> GetProcesses(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const bool with_gpus, parameters.TakeFlag("gpus"));
  ASSIGN_OR_RETURN(const model::Selection selection, parameters.TakeTimeRange());
  TRY(parameters.Finish());
  ASSIGN_OR_RETURN(auto processes, Answer(data.ReadProcesses(selection)));
  std::optional<std::vector<store::GpuUser>> users;
  if (with_gpus) {
    ASSIGN_OR_RETURN(users, Answer(data.ReadGpuUsers(selection)));
  }
  return ProcessesJson(std::move(processes), users);
}

Result<std::string> GetDevices(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const model::Selection selection, parameters.TakeTimeRange());
  TRY(parameters.Finish());
  ASSIGN_OR_RETURN(const auto devices, Answer(data.ReadDeviceUse(selection)));
  return DevicesJson(devices);
}

Result<std::string> GetUsage(ApiData& data, const UsageForm& form, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const UsageQuestion question, TakeUsageQuestion(parameters));
  ASSIGN_OR_RETURN(const usage::Usage usage, Answer(data.ReadUsage(question.selection, question.by)));
  return form.write(usage, question);
}

Result<std::string> GetIncidents(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const auto buckets, parameters.TakeInteger("buckets", 0, kMaxBuckets));
  ASSIGN_OR_RETURN(const model::Selection selection, parameters.TakeSelection());
  TRY(parameters.Finish());
  const int count = static_cast<int>(buckets.value_or(kDefaultBuckets));
  ASSIGN_OR_RETURN(const store::Incidents incidents, Answer(data.ReadIncidents(selection, count)));
  return IncidentsJson(incidents);
}

Result<std::string> GetTimeline(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const auto columns, parameters.TakeInteger("columns", 1, kMaxColumns));
  store::TracksOptions options;
  if (columns.has_value()) options.columns = static_cast<int>(*columns);
  ASSIGN_OR_RETURN(options.helper_threads, parameters.TakeFlag("helper_threads"));
  ASSIGN_OR_RETURN(const model::Selection selection, parameters.TakeSelection());
  TRY(parameters.Finish());
  if (!selection.filter.empty() || selection.while_gpu_idle)
    return Fail(ErrorCode::kInvalidArgument,
                "a timeline can't be filtered by 'filter' or 'while_gpu_idle': leave them out");
  // Without Answer(): it says when the time holds too many events.
  ASSIGN_OR_RETURN(const store::Tracks tracks, data.ReadTracks(selection, options));
  return TracksJson(tracks);
}

Result<std::string> GetWork(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() - 1;
  ASSIGN_OR_RETURN(const auto process, parameters.TakeId("process"));
  ASSIGN_OR_RETURN(const auto device, parameters.TakeId("device"));
  ASSIGN_OR_RETURN(const auto stream,
                   parameters.TakeInteger("stream", std::numeric_limits<int64_t>::min(), kMax));
  ASSIGN_OR_RETURN(const auto start_ns, parameters.TakeInteger("start_ns", 0, kMax));
  TRY(parameters.Finish());
  if (!process.has_value() || !device.has_value() || !stream.has_value() || !start_ns.has_value())
    return Fail(ErrorCode::kInvalidArgument,
                "work is identified by 'process', 'device', 'stream' and 'start_ns': give all four");
  ASSIGN_OR_RETURN(const std::optional<store::LaunchedWork> work,
                   Answer(data.ReadWork({*process, *device, *stream, *start_ns})));
  if (!work.has_value())
    return Fail(ErrorCode::kNotFound,
                fmt::format("no work of that process started on stream {} of that device at {} ns", *stream,
                            *start_ns));
  return WorkJson(*work);
}

// Reads the profile of a flame graph; other parameters are taken before.
Result<model::Profile> ReadSelectedProfile(ApiData& data, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const ProfileQuestion question, TakeProfileQuestion(parameters));
  TRY(parameters.Finish());
  return Answer(ReadProfile(data, question.type, question.selection));
}

Result<std::string> GetObservations(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const model::Selection selection, parameters.TakeTimeRange());
  TRY(parameters.Finish());
  ASSIGN_OR_RETURN(const auto observations, Answer(data.ReadObservations(selection)));
  return fleet::ToJson(observations);
}

Result<std::string> GetFlameGraph(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const auto min_total,
                   parameters.TakeInteger("min_total", 0, std::numeric_limits<int64_t>::max()));
  FlameTreeOptions options{.min_total_ns = min_total.value_or(0)};
  ASSIGN_OR_RETURN(options.roots, parameters.TakeFlag("roots"));
  ASSIGN_OR_RETURN(options.helper_threads, parameters.TakeFlag("helper_threads"));
  ASSIGN_OR_RETURN(const model::Profile profile, ReadSelectedProfile(data, parameters));
  return FlameTreeJson(BuildFlameTree(profile, options));
}

Result<std::string> GetPprof(ApiData& data, const ApiFacts& facts, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const model::Profile profile, ReadSelectedProfile(data, parameters));
  return exporters::kPprof.render(profile, {.title = facts.title});
}

Result<std::string> GetComparison(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const ComparisonQuestion question, TakeComparisonQuestion(parameters));
  TRY(parameters.Finish());
  return CompareSelections(data, question);
}

Result<std::string> GetSummary(ApiData& data, const ApiFacts&, QueryParameters& parameters) {
  ASSIGN_OR_RETURN(const model::Selection selection, parameters.TakeSelection());
  TRY(parameters.Finish());
  ASSIGN_OR_RETURN(const bool sampled, Answer(data.HasCpuSamples(selection)));
  ASSIGN_OR_RETURN(const std::optional<exporters::GpuFacts> gpu,
                   Answer(ReadGpuFacts(data, selection, sampled)));
  return SummaryJson(gpu);
}

Result<std::string> GetSource(ApiData& data, const ApiFacts& facts, QueryParameters& parameters) {
  const std::optional<std::string_view> name = parameters.TakeText("file");
  if (!name.has_value() || name->empty())
    return Fail(ErrorCode::kInvalidArgument, "parameter 'file' is missing: give the path of a source file");
  SourceFile source{.file = std::string(*name)};
  ASSIGN_OR_RETURN(model::Selection selection, parameters.TakeSelection());
  TRY(parameters.Finish());
  ASSIGN_OR_RETURN(const bool known, Answer(data.NamesFile(source.file)));
  if (!known)
    return Fail(ErrorCode::kNotFound, fmt::format("no recorded function is from the file {}", source.file));
  ASSIGN_OR_RETURN(const model::Profile cpu, Answer(data.ReadProfile(selection)));
  source.cpu = {TimesByLine(cpu, source.file), TotalTime(cpu)};
  if (!selection.while_gpu_idle) {
    ASSIGN_OR_RETURN(const model::Profile gpu, Answer(data.ReadGpuProfile(selection)));
    source.gpu = {TimesByLine(gpu, source.file), TotalTime(gpu)};
    selection.off_cpu = true;
    ASSIGN_OR_RETURN(const model::Profile waits, Answer(data.ReadProfile(selection)));
    source.waits = {TimesByLine(waits, source.file), TotalTime(waits)};
  }
  source.text = facts.sources->Read(source.file);
  return SourceJson(source);
}

// Whether queries are answered.
HttpResponse GetReady(ApiData& data) {
  if (const auto sources = data.ReadSources(); !sources.has_value())
    return ErrorResponse(503, {ErrorCode::kUnavailable, sources.error().message});
  return PlainResponse("ready\n");
}

struct Route {
  std::string_view path;
  Result<std::string> (*get)(ApiData& data, const ApiFacts& facts, QueryParameters& parameters);
  std::string_view content_type = "application/json";
};

constexpr std::string_view kOverviewPath = "/api/v1/overview";
constexpr Route kRoutes[] = {
    {"/api/v1/compare", GetComparison},
    {"/api/v1/devices", GetDevices},
    {"/api/v1/flamegraph", GetFlameGraph},
    {"/api/v1/fleet/observations", GetObservations},
    {"/api/v1/incidents", GetIncidents},
    {kOverviewPath, GetOverview},
    {"/api/v1/processes", GetProcesses},
    {"/api/v1/profile.pb.gz", GetPprof, "application/octet-stream"},
    {"/api/v1/source", GetSource},
    {"/api/v1/strips", GetStrips},
    {"/api/v1/summary", GetSummary},
    {"/api/v1/timeline", GetTimeline},
    {"/api/v1/work", GetWork},
};

Result<HttpResponse> Get(ApiData& data, const ApiFacts& facts, const HttpRequest& request) {
  ASSIGN_OR_RETURN(QueryParameters parameters, QueryParameters::Create(request.query));
  if (const UsageForm* const form = FindUsageForm(request.path); form != nullptr) {
    ASSIGN_OR_RETURN(std::string body, GetUsage(data, *form, parameters));
    return ContentResponse(form->content_type, std::move(body));
  }
  const auto route = std::ranges::find(kRoutes, request.path, &Route::path);
  if (route == std::end(kRoutes))
    return Fail(ErrorCode::kNotFound,
                fmt::format("there is no '{}' here; docs/api.md lists all addresses", request.path));
  ASSIGN_OR_RETURN(std::string body, route->get(data, facts, parameters));
  return ContentResponse(route->content_type, std::move(body));
}

// The ETag of a response, computed without the response: it stays the same as long as the data does.
// `started` distinguishes runs of the server, each of which counts revisions from 0. Weak, because the same
// response may be sent compressed or not.
std::string EtagOf(const HttpRequest& request, const ApiFacts& facts, uint64_t started, uint64_t revision) {
  IdHasher hasher("answer");
  hasher.Add(started).Add(revision).Add(request.path);
  for (const auto& [name, value] : request.query) hasher.Add(name).Add(value);
  if (request.path == kOverviewPath)
    for (const std::string& notice : facts.notices()) hasher.Add(notice);
  return fmt::format("W/\"{}\"", hasher.Finish().ToHex());
}

// Responses that depend on files, which may change while the data doesn't.
bool ReadsFiles(const HttpRequest& request) { return request.path == "/api/v1/source"; }

}  // namespace

std::vector<std::string_view> ApiPaths() {
  std::vector<std::string_view> paths;
  for (const Route& route : kRoutes) paths.push_back(route.path);
  for (const UsageForm& form : UsageForms()) paths.push_back(form.path);
  return paths;
}

HttpHandler ApiHandler(ApiData& data, ApiFacts facts) {
  const auto started = static_cast<uint64_t>(EpochNow());
  const auto pacer = std::make_shared<RevisionPacer>();
  const auto reads = std::make_shared<PolledReads>();
  return [&data, facts = std::move(facts), started, pacer, reads](const HttpRequest& request) {
    if (request.path == "/metrics" && facts.metrics) return facts.metrics(request);
    if (request.path == "/readyz") return GetReady(data);
    const int64_t begin_ns = ProcessCpuNow();
    // Read the revision before computing the response: rows that arrive meanwhile belong to a later revision.
    const uint64_t revision = pacer->Revision([&data] { return data.Revision(); });
    const std::string etag = EtagOf(request, facts, started, revision);
    if (request.if_none_match.contains(etag) && !ReadsFiles(request))
      return HttpResponse{.status = 304, .etag = etag};
    // Only polls, which send If-None-Match, count as cost; other requests are answered at any cost.
    std::optional<RevisionPacer::Answering> answering;
    if (!request.if_none_match.empty()) answering.emplace(*pacer);
    // Where no data arrives, what one answer reads is as good for any other. A page's summary and flame graph
    // ask for the same profile at once, and two of a trace of 5 million kernels needed more memory than
    // `view` has.
    const bool shares = answering.has_value() || !facts.live;
    PolledData polled(data, *reads, revision);
    Result<HttpResponse> response = Get(shares ? polled : data, facts, request);
    if (!response.has_value()) return ErrorResponse(response.error());
    response->etag = etag;
    response->cpu_ns = ProcessCpuNow() - begin_ns;
    return *std::move(response);
  };
}

}  // namespace gpusonde::server
