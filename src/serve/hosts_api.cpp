// SPDX-License-Identifier: Apache-2.0
#include "serve/hosts_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/json_writer.h"
#include "base/time.h"
#include "serve/host_list.h"
#include "serve/host_usage.h"
#include "serve/hosts_query.h"
#include "serve/of_hosts.h"
#include "serve/refusals.h"
#include "server/api.h"
#include "server/api_json.h"
#include "server/query_parameters.h"
#include "server/usage_question.h"
#include "usage/usage.h"

namespace gpusonde::serve {
namespace {

// The newest incidents of all hosts that the list shows.
constexpr size_t kMaxIncidents = 100;

constexpr int64_t kUsageNs = kNanosPerDay;  // of the time asked for, where it has no begin

// How far the newest sample of a host may be from now on arrival without a notice. Agents pause for at most a
// minute, and clocks differ a little.
constexpr int64_t kMaxAgeNs = 600 * kNanosPerSecond, kMaxAheadNs = 60 * kNanosPerSecond;

// What the age of the newest rows says of the two clocks; empty: nothing.
std::string NoticeOfClocks(const Host& host) {
  const int64_t age_ns = host.spool_age_ns().value_or(0);
  const auto minutes = [](int64_t ns) { return Counted(ns / (60 * kNanosPerSecond), "minute"); };
  constexpr std::string_view kByServer = "Usage of all hosts goes by this server's clock.";
  if (age_ns < -kMaxAheadNs)
    return fmt::format("The clock of {} is {} ahead of this server's: correct the wrong one. {}", host.name(),
                       minutes(-age_ns), kByServer);
  if (age_ns > kMaxAgeNs)
    return fmt::format(
        "The newest samples of {} were {} old when they came: its agent still sends what waited in its "
        "spool, or its clock is behind this server's. {}",
        host.name(), minutes(age_ns), kByServer);
  return {};
}

// Of all hosts that send: the first of them, and how many more there are.
std::vector<std::string> NoticesOfClocks(std::span<const HostList::Line> lines) {
  constexpr int64_t kMaxClocks = 3;
  std::vector<std::string> notices;
  int64_t more = 0;
  for (const HostList::Line& line : lines) {
    if (line.host->IsSilent(MonotonicNow())) continue;
    std::string notice = NoticeOfClocks(*line.host);
    if (notice.empty()) continue;
    if (std::ssize(notices) < kMaxClocks)
      notices.push_back(std::move(notice));
    else
      ++more;
  }
  if (more > 0) notices.push_back(fmt::format("Times of {} differ as well.", Counted(more, "more host")));
  return notices;
}

std::vector<std::string> NoticesOf(Host& host, const Hosts& hosts, const Refusals& refusals) {
  // With one host there is no list that would name the others.
  std::vector<std::string> notices =
      refusals.Sentences(MonotonicNow(), hosts.All().size() == 1 ? std::string() : host.name());
  if (const auto store = host.Store(); store.has_value())
    std::ranges::move((*store)->notices(), std::back_inserter(notices));
  const int64_t seen_ns = host.last_seen_ns();
  if (seen_ns == 0)
    notices.push_back(fmt::format("{} has sent nothing that could be stored yet.", host.name()));
  else if (host.IsSilent(MonotonicNow()))
    notices.push_back(
        fmt::format("No data from {} since {} UTC: its agent doesn't run, or can't reach this server.",
                    host.name(), FormatUtcSecond(seen_ns)));
  else if (std::string clocks = NoticeOfClocks(host); !clocks.empty())
    notices.push_back(std::move(clocks));
  return notices;
}

// The API of one host. A caller holds the host meanwhile, as retention may delete it.
class HostPages {
 public:
  // `hosts` and `refusals` must outlive it.
  HostPages(const std::shared_ptr<Host>& host, store::LiveStore& store, const Hosts& hosts,
            const Refusals& refusals)
      : host_(host.get()),
        data_(server::ReadingFrom(store)),
        api_(server::ApiHandler(*data_, {.mode = "serve",
                                         .live = true,
                                         .silent = [host = host_] { return host->IsSilent(MonotonicNow()); },
                                         .title = host_->name(),
                                         .notices = [host = host_, &hosts,
                                                     &refusals] { return NoticesOf(*host, hosts, refusals); },
                                         .metrics = {}})) {}

  server::HttpResponse Answer(const server::HttpRequest& request) const { return api_(request); }

 private:
  Host* const host_;
  const std::unique_ptr<server::ApiData> data_;
  const server::HttpHandler api_;
};

// Errors: kInvalidArgument if the request has any.
Status CheckNoParameters(const server::HttpRequest& request) {
  ASSIGN_OR_RETURN(const server::QueryParameters parameters, server::QueryParameters::Create(request.query));
  return parameters.Finish();
}

void WriteHost(JsonWriter& json, const HostList::Line& line, const HostUsage::Total* day) {
  const HostSummary* summary =
      line.summary != nullptr && line.summary->has_value() ? &line.summary->value() : nullptr;
  json.BeginObject().Field("name", line.host->name());
  json.Field("last_seen_us", line.host->last_seen_ns() / kNanosPerMicro);
  json.Field("silent", line.host->IsSilent(MonotonicNow()));
  json.Field("gpus", summary != nullptr ? std::optional(summary->gpus) : std::nullopt);
  json.Field("busy", summary != nullptr ? summary->busy : std::nullopt);
  json.Field("incidents", summary != nullptr ? std::optional(summary->incidents) : std::nullopt);
  json.Field("held_ns",
             day != nullptr ? std::optional<int64_t>(std::llround(day->accountable_ns)) : std::nullopt);
  json.Field("idle_ns", day != nullptr ? std::optional<int64_t>(std::llround(day->idle_ns)) : std::nullopt);
  json.Field("bytes", line.host->Bytes());
  if (line.summary == nullptr)
    json.Field("error", "not read yet");
  else
    json.Field("error", summary != nullptr ? std::string() : line.summary->error().message);
  json.EndObject();
}

// Of all hosts, the newest first.
void WriteIncidents(JsonWriter& json, std::span<const HostList::Line> lines) {
  struct Found {
    const std::string* host;
    const store::NewestIncidents::Line* incident;
  };
  std::vector<Found> all;
  int64_t count = 0;
  for (const HostList::Line& line : lines) {
    if (line.summary == nullptr || !line.summary->has_value()) continue;
    count += (*line.summary)->incidents;
    for (const store::NewestIncidents::Line& incident : (*line.summary)->newest)
      all.push_back({&line.host->name(), &incident});
  }
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const Found& found) { return found.incident->incident.start_ns; });
  all.resize(std::min(all.size(), kMaxIncidents));
  json.Key("incidents").BeginArray();
  for (const auto& [host, found] : all) {
    const model::Incident& incident = found->incident;
    json.BeginObject().Field("host", *host).Field("id", incident.incident.ToHex());
    json.Field("name", found->process_name).Field("pid", found->pid);
    json.Field("from_us", incident.start_ns / kNanosPerMicro);
    json.Field("to_us", incident.end_ns.transform([](int64_t ns) { return ns / kNanosPerMicro; }));
    json.Field("slowdown", incident.slowdown).Field("cause", incident.cause);
    json.Field("confidence", incident.confidence).Field("sentence", incident.sentence).EndObject();
  }
  json.EndArray().Field("incidents_omitted", count - std::ssize(all));
}

class AllPages {
 public:
  AllPages(Hosts& hosts, const IngestCounts& counts, server::HttpHandler metrics)
      : hosts_(hosts),
        list_(hosts),
        usage_(hosts),
        query_(hosts),
        counts_(counts),
        metrics_(std::move(metrics)) {}

  server::HttpResponse Answer(server::HttpRequest request) {
    if (request.path == "/readyz") return Ready();
    if (request.path == "/metrics" && metrics_) return metrics_(request);
    if (request.path == "/api/v1/hosts") return List(request);
    if (request.path == "/api/v1/query") return query_.Answer(request);
    if (const auto* form = server::FindUsageForm(request.path); form != nullptr && !IsOfOneHost(request))
      return UsageOfAll(request, *form);
    const auto named = std::ranges::find(request.query, "host", &std::pair<std::string, std::string>::first);
    std::shared_ptr<Host> host;
    if (named != request.query.end()) {
      const auto found = hosts_.Find(named->second);
      if (!found.has_value()) return server::ErrorResponse(found.error());
      host = *found;
      request.query.erase(named);
    } else {
      const std::vector<std::shared_ptr<Host>> all = hosts_.All();
      if (all.size() != 1 && request.path == "/api/v1/overview") return NoHost(request, all.size());
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
    // Opens it, which may take a while, before other hosts' pages are kept waiting.
    ASSIGN_OR_RETURN(store::LiveStore* const store, host->Store());
    const std::scoped_lock lock(mutex_);
    pages_.ForgetDeleted();
    std::shared_ptr<HostPages>& pages = pages_[host];
    if (pages == nullptr) pages = std::make_shared<HostPages>(host, *store, hosts_, counts_.refusals);
    return pages;
  }

  server::HttpResponse Ready() const {
    if (const Status room = hosts_.CheckRoom(); !room.has_value())
      return server::ErrorResponse(503, room.error());
    return server::PlainResponse("ready\n");
  }

  server::HttpResponse List(const server::HttpRequest& request) {
    if (const Status none = CheckNoParameters(request); !none.has_value())
      return server::ErrorResponse(none.error());
    const std::vector<HostList::Line> lines = list_.Read();
    const int64_t now_ns = EpochNow();
    const auto days = usage_.Totals({now_ns - kUsageNs, now_ns});
    JsonWriter json;
    json.BeginObject().Key("hosts").BeginArray();
    for (const HostList::Line& line : lines) {
      const auto day = days.find(line.host->name());
      WriteHost(json, line, day == days.end() ? nullptr : &day->second);
    }
    json.EndArray();
    WriteIncidents(json, lines);
    json.Key("notices").BeginArray();
    for (const std::string& sentence : counts_.refusals.Sentences(MonotonicNow())) json.Value(sentence);
    for (const std::string& sentence : NoticesOfClocks(lines)) json.Value(sentence);
    json.EndArray();
    json.Key("received").BeginObject();
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
  server::HttpResponse UsageOfAll(const server::HttpRequest& request, const server::UsageForm& form) {
    Result<server::QueryParameters> parameters = server::QueryParameters::Create(request.query);
    if (!parameters.has_value()) return server::ErrorResponse(parameters.error());
    Result<server::UsageQuestion> question = server::TakeUsageQuestion(*parameters);
    if (!question.has_value()) return server::ErrorResponse(question.error());
    // Of an open range each host would answer for another time.
    model::Selection& selection = question->selection;
    selection.to_ns = std::min(selection.to_ns, EpochNow());
    if (selection.from_ns < 0) selection.from_ns = selection.to_ns - kUsageNs;
    if (selection.from_ns >= selection.to_ns)
      return server::ErrorResponse(
          {ErrorCode::kInvalidArgument, "parameter 'from_us' is in the future, by this server's clock"});
    return server::ContentResponse(
        form.content_type,
        form.write(usage_.Sum({selection.from_ns, selection.to_ns}, question->by), *question));
  }

  // An overview without data: the page shows the list instead.
  static server::HttpResponse NoHost(const server::HttpRequest& request, size_t hosts) {
    if (const Status none = CheckNoParameters(request); !none.has_value())
      return server::ErrorResponse(none.error());
    return server::JsonResponse(server::OverviewJson(
        {}, {.mode = "serve", .live = true, .title = fmt::format("{} hosts", hosts), .metrics = {}}));
  }

  Hosts& hosts_;
  HostList list_;
  HostUsage usage_;
  HostsQuery query_;
  const IngestCounts& counts_;
  const server::HttpHandler metrics_;
  std::mutex mutex_;  // guards what follows
  OfHosts<std::shared_ptr<HostPages>> pages_;
};

}  // namespace

server::HttpHandler HostsApi(Hosts& hosts, const IngestCounts& counts, server::HttpHandler metrics) {
  return [pages = std::make_shared<AllPages>(hosts, counts, std::move(metrics))](
             const server::HttpRequest& request) { return pages->Answer(request); };
}

}  // namespace gpusonde::serve
