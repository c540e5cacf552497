// SPDX-License-Identifier: Apache-2.0
#include "serve/hosts_api.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/time.h"
#include "server/api.h"
#include "server/api_json.h"
#include "server/query_parameters.h"
#include "server/usage_question.h"
#include "store/queries/gpu_query.h"
#include "store/queries/incident_query.h"
#include "usage/report.h"
#include "usage/usage.h"

namespace gpusonde::serve {
namespace {

// What a host's line in the list sums up, and how old it may get: the list is read while a page is open.
constexpr int64_t kBusyNs = 900 * kNanosPerSecond;
constexpr int64_t kIncidentsNs = 86'400 * kNanosPerSecond;
constexpr int64_t kFreshNs = 10 * kNanosPerSecond;

constexpr std::string_view kUsagePath = "/api/v1/usage";
constexpr int64_t kUsageNs = 86'400 * kNanosPerSecond;  // of the time asked for, where it has no begin

std::vector<std::string> NoticesOf(Host& host) {
  std::vector<std::string> notices;
  if (const auto store = host.Store(); store.has_value()) notices = (*store)->notices();
  const int64_t seen_ns = host.last_seen_ns();
  if (host.IsSilent(EpochNow()))
    notices.push_back(fmt::format(
        "Nothing has come from {} since {:%F %T} UTC: its agent doesn't run, or can't reach this server.",
        host.name(),
        std::chrono::floor<std::chrono::seconds>(
            std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(seen_ns)))));
  return notices;
}

struct Summary {
  int64_t gpus = 0;
  std::optional<double> busy;  // 0…1 of the time observed
  int64_t incidents = 0;
};

Result<Summary> Summarise(store::Store& store, int64_t now_ns) {
  Summary summary;
  ASSIGN_OR_RETURN(const auto devices,
                   store::ReadDeviceUse(store, {.from_ns = now_ns - kBusyNs, .to_ns = now_ns, .filter = {}}));
  int64_t busy_ns = 0, observed_ns = 0;
  for (const store::DeviceUse& device : devices) {
    busy_ns += device.busy_ns;
    observed_ns += device.observed_ns;
  }
  summary.gpus = std::ranges::count_if(
      devices, [](const store::DeviceUse& use) { return !use.device.parent.has_value(); });
  if (observed_ns > 0) summary.busy = static_cast<double>(busy_ns) / static_cast<double>(observed_ns);
  ASSIGN_OR_RETURN(
      const store::Incidents found,
      store::ReadIncidents(store, {.from_ns = now_ns - kIncidentsNs, .to_ns = now_ns, .filter = {}}, 1));
  summary.incidents = std::ssize(found.incidents) + found.omitted;
  return summary;
}

// The API of one host, and its line in the list. Whoever uses it holds the host, which retention may delete.
class HostPages {
 public:
  static Result<std::shared_ptr<HostPages>> Open(const std::shared_ptr<Host>& host) {
    ASSIGN_OR_RETURN(store::LiveStore* const store, host->Store());
    return std::shared_ptr<HostPages>(new HostPages(host, *store));
  }

  // Whether it is this host's: one that was deleted and made anew has another store.
  bool IsOf(const std::shared_ptr<Host>& host) const { return owner_.lock() == host; }

  server::HttpResponse Answer(const server::HttpRequest& request) const { return api_(request); }

  Result<usage::Usage> ReadUsage(const server::UsageQuestion& question) const {
    return data_->ReadUsage(question.selection, question.by);
  }

  void WriteLine(JsonWriter& json) {
    const Result<Summary> summary = FreshSummary();
    json.BeginObject().Field("name", host_->name());
    json.Field("last_seen_us", host_->last_seen_ns() / kNanosPerMicro);
    json.Field("silent", host_->IsSilent(EpochNow()));
    json.Field("gpus", summary.has_value() ? std::optional(summary->gpus) : std::nullopt);
    json.Field("busy", summary.has_value() ? summary->busy : std::nullopt);
    json.Field("incidents", summary.has_value() ? std::optional(summary->incidents) : std::nullopt);
    json.Field("bytes", host_->Bytes());
    json.Field("error", summary.has_value() ? std::string() : summary.error().message);
    json.EndObject();
  }

 private:
  HostPages(const std::shared_ptr<Host>& host, store::LiveStore& store)
      : owner_(host),
        host_(host.get()),
        store_(store),
        data_(server::ReadingFrom(store)),
        api_(server::ApiHandler(*data_, {.mode = "serve",
                                         .live = true,
                                         .title = host_->name(),
                                         .notices = [host = host_] { return NoticesOf(*host); },
                                         .metrics = {}})) {}

  Result<Summary> FreshSummary() {
    const std::scoped_lock lock(mutex_);
    if (!summary_.has_value() || MonotonicNow() - summed_ns_ > kFreshNs) {
      ASSIGN_OR_RETURN(summary_, Summarise(store_, EpochNow()));
      summed_ns_ = MonotonicNow();
    }
    return *summary_;
  }

  const std::weak_ptr<Host> owner_;
  Host* const host_;
  store::LiveStore& store_;
  const std::unique_ptr<server::ApiData> data_;
  const server::HttpHandler api_;
  std::mutex mutex_;  // guards what follows
  std::optional<Summary> summary_;
  int64_t summed_ns_ = 0;  // monotonic
};

class AllPages {
 public:
  AllPages(Hosts& hosts, const IngestCounts& counts, server::HttpHandler metrics)
      : hosts_(hosts), counts_(counts), metrics_(std::move(metrics)) {}

  server::HttpResponse Answer(server::HttpRequest request) {
    if (request.path == "/readyz") return Ready();
    if (request.path == "/metrics" && metrics_) return metrics_(request);
    if (request.path == "/api/v1/hosts") return List();
    if (request.path == kUsagePath && !IsOfOneHost(request)) return UsageOfAll(request);
    const auto named = std::ranges::find(request.query, "host", &std::pair<std::string, std::string>::first);
    std::shared_ptr<Host> host;
    if (named != request.query.end()) {
      const auto found = hosts_.Find(named->second);
      if (!found.has_value()) return server::ErrorResponse(found.error());
      host = *found;
      request.query.erase(named);
    } else {
      const std::vector<std::shared_ptr<Host>> all = hosts_.All();
      if (all.size() != 1 && request.path == "/api/v1/overview") return NoHost(all.size());
      if (all.size() != 1)
        return server::ErrorResponse(
            {ErrorCode::kInvalidArgument, "parameter 'host' is missing: /api/v1/hosts lists what it can be"});
      host = all.front();
    }
    host->SetWatched(MonotonicNow());
    const auto pages = PagesOf(host);
    return pages.has_value() ? (*pages)->Answer(request) : server::ErrorResponse(pages.error());
  }

 private:
  Result<std::shared_ptr<HostPages>> PagesOf(const std::shared_ptr<Host>& host) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<HostPages>& pages = pages_[host->name()];
    if (pages == nullptr || !pages->IsOf(host)) {
      ASSIGN_OR_RETURN(pages, HostPages::Open(host));
    }
    return pages;
  }

  server::HttpResponse Ready() const {
    if (const Status room = hosts_.CheckRoom(); !room.has_value())
      return server::ErrorResponse(503, room.error());
    return server::PlainResponse("ready\n");
  }

  server::HttpResponse List() {
    JsonWriter json;
    json.BeginObject().Key("hosts").BeginArray();
    for (const std::shared_ptr<Host>& host : hosts_.All()) {
      const auto pages = PagesOf(host);
      if (pages.has_value()) (*pages)->WriteLine(json);
    }
    json.EndArray().Key("received").BeginObject();
    json.Field("requests", counts_.requests.load()).Field("frames", counts_.frames.load());
    json.Field("bytes", counts_.bytes.load()).Field("refused", counts_.refused.load());
    json.Field("turned_away", counts_.turned_away.load()).EndObject().EndObject();
    return server::JsonResponse(json.Take());
  }

  bool IsOfOneHost(const server::HttpRequest& request) const {
    return hosts_.All().size() == 1 || std::ranges::any_of(request.query, [](const auto& parameter) {
             return parameter.first == "host";
           });
  }

  // Of all hosts together: a job has processes on several.
  server::HttpResponse UsageOfAll(const server::HttpRequest& request) {
    Result<server::QueryParameters> parameters = server::QueryParameters::Create(request.query);
    if (!parameters.has_value()) return server::ErrorResponse(parameters.error());
    Result<server::UsageQuestion> question = server::TakeUsageQuestion(*parameters);
    if (!question.has_value()) return server::ErrorResponse(question.error());
    // Of an open range each host would answer for another time.
    model::Selection& selection = question->selection;
    selection.to_ns = std::min(selection.to_ns, EpochNow());
    if (selection.from_ns < 0) selection.from_ns = selection.to_ns - kUsageNs;
    std::vector<usage::Usage> all;
    for (const std::shared_ptr<Host>& host : hosts_.All()) {
      const auto pages = PagesOf(host);
      if (!pages.has_value()) return server::ErrorResponse(pages.error());
      Result<usage::Usage> usage = (*pages)->ReadUsage(*question);
      if (!usage.has_value()) return server::ErrorResponse(usage.error());
      all.push_back(*std::move(usage));
    }
    usage::Usage sum = usage::Merge(std::move(all));
    sum.range = {selection.from_ns, selection.to_ns};
    sum.by = question->by;
    return server::JsonResponse(usage::ToJson(sum, std::nullopt));
  }

  // An overview without data: the page shows the list instead.
  static server::HttpResponse NoHost(size_t hosts) {
    return server::JsonResponse(server::OverviewJson(
        {}, {.mode = "serve", .live = true, .title = fmt::format("{} hosts", hosts), .metrics = {}}));
  }

  Hosts& hosts_;
  const IngestCounts& counts_;
  const server::HttpHandler metrics_;
  std::mutex mutex_;  // guards pages_
  std::map<std::string, std::shared_ptr<HostPages>> pages_;
};

}  // namespace

server::HttpHandler HostsApi(Hosts& hosts, const IngestCounts& counts, server::HttpHandler metrics) {
  return [pages = std::make_shared<AllPages>(hosts, counts, std::move(metrics))](
             const server::HttpRequest& request) { return pages->Answer(request); };
}

}  // namespace gpusonde::serve
