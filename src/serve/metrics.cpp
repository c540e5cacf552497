// SPDX-License-Identifier: Apache-2.0
#include "serve/metrics.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/text.h"
#include "server/api.h"
#include "server/metrics_server.h"

namespace gpusonde::serve {
namespace {

namespace prometheus = exporters::prometheus;
using prometheus::TextWriter;

constexpr int64_t kSlowNs = kNanosPerSecond;

double ToSeconds(int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNanosPerSecond); }

void WriteHosts(TextWriter& writer, const Hosts& hosts) {
  std::vector<std::shared_ptr<Host>> all = hosts.All();
  const int64_t now_ns = MonotonicNow();
  writer.Begin(prometheus::kServeHosts);
  writer.Write({}, {}, std::ssize(all));
  writer.Begin(prometheus::kServeAgents);
  writer.Write({}, {}, std::ranges::count_if(all, [now_ns](const std::shared_ptr<Host>& host) {
                 return !host->IsSilent(now_ns);
               }));
  writer.Begin(prometheus::kServeHostsOmitted);
  writer.Write({}, {}, static_cast<int64_t>(all.size() - std::min(all.size(), kMaxHostSeries)));
  all.resize(std::min(all.size(), kMaxHostSeries));
  writer.Begin(prometheus::kServeHostSeen);
  for (const auto& host : all) writer.Write({}, {{"host", host->name()}}, ToSeconds(host->last_seen_ns()));
  writer.Begin(prometheus::kServeSpoolAge);
  for (const auto& host : all)
    if (const auto age_ns = host->spool_age_ns(); age_ns.has_value())
      writer.Write({}, {{"host", host->name()}}, ToSeconds(*age_ns));
  writer.Begin(prometheus::kServeBytes);
  for (const auto& host : all) writer.Write({}, {{"host", host->name()}}, host->Bytes());
}

void WriteIngest(TextWriter& writer, const IngestCounts& counts) {
  writer.Begin(prometheus::kServeRequests);
  writer.Write({}, {{"outcome", "accepted"}}, counts.requests.load());
  writer.Write({}, {{"outcome", "refused"}}, counts.refused.load());
  writer.Write({}, {{"outcome", "turned_away"}}, counts.turned_away.load());
  writer.Begin(prometheus::kServeFrames);
  writer.Write({}, {}, counts.frames.load());
  writer.Begin(prometheus::kServeReceived);
  writer.Write({}, {}, counts.bytes.load());
}

void WriteQueries(TextWriter& writer, const QueryTimes& queries) {
  writer.Begin(prometheus::kQueries);
  for (const auto& path : queries.paths()) writer.Write({}, {{"path", path.path}}, path.answers.load());
  writer.Begin(prometheus::kQuerySeconds);
  for (const auto& path : queries.paths()) writer.Write({}, {{"path", path.path}}, ToSeconds(path.ns));
  writer.Begin(prometheus::kSlowQueries);
  for (const auto& path : queries.paths()) writer.Write({}, {{"path", path.path}}, path.slow.load());
}

void WriteHttp(TextWriter& writer, const ServeMetrics& metrics) {
  const std::array<std::pair<std::string_view, const server::HttpCounts&>, 2> addresses = {
      {{"agents", metrics.agents}, {"pages", metrics.pages}}};
  writer.Begin(prometheus::kConnections);
  for (const auto& [name, counts] : addresses)
    writer.Write({}, {{"address", name}}, counts.connections.load());
  writer.Begin(prometheus::kConnectionsClosed);
  for (const auto& [name, counts] : addresses)
    writer.Write({}, {{"address", name}}, counts.turned_away.load());
  writer.Begin(prometheus::kDenied);
  for (const auto& [name, counts] : addresses) writer.Write({}, {{"address", name}}, counts.denied.load());
  if (metrics.access != nullptr) {
    writer.Begin(prometheus::kSessions);
    writer.Write({}, {}, static_cast<int64_t>(metrics.access->sessions()));
  }
  if (metrics.tls == nullptr) return;
  writer.Begin(prometheus::kTlsFailures);
  for (const auto& [name, counts] : addresses) {
    writer.Write({}, {{"address", name}, {"reason", "handshake"}}, counts.handshakes_failed.load());
    writer.Write({}, {{"address", name}, {"reason", "client_certificate"}},
                 counts.certificates_refused.load());
    writer.Write({}, {{"address", name}, {"reason", "not_tls"}}, counts.not_tls.load());
  }
  writer.Begin(prometheus::kTlsExpiry);
  writer.Write({}, {}, metrics.tls->expires_s());
}

}  // namespace

QueryTimes::QueryTimes() {
  std::vector<std::string_view> names = server::ApiPaths();
  names.insert(names.end(), {"/api/v1/hosts", "/api/v1/query"});
  std::ranges::sort(names);
  for (const std::string_view name : names) paths_.emplace_back(name);
  paths_.emplace_back("other");
}

void QueryTimes::Add(std::string_view path, int64_t ns) {
  auto found = std::ranges::find(paths_, path, &Path::path);
  if (found == paths_.end()) found = std::prev(paths_.end());
  ++found->answers;
  found->ns += ns;
  if (ns > kSlowNs) ++found->slow;
}

server::HttpHandler MetricsHandler(const ServeMetrics& metrics) {
  server::ReadOwnUse();  // notes the start
  return [metrics](const server::HttpRequest& request) {
    const prometheus::Format format = prometheus::FormatFor(request.accept);
    TextWriter writer(format);
    WriteHosts(writer, metrics.hosts);
    WriteIngest(writer, metrics.ingest);
    WriteQueries(writer, metrics.queries);
    WriteHttp(writer, metrics);
    writer.WriteOwn(server::ReadOwnUse());
    return server::HttpResponse{.content_type = std::string(prometheus::ContentType(format)),
                                .body = std::make_shared<const std::string>(writer.Finish())};
  };
}

server::HttpHandler Timing(server::HttpHandler handler, QueryTimes& times) {
  return [handler = std::move(handler), &times](const server::HttpRequest& request) {
    const int64_t begin_ns = MonotonicNow();
    server::HttpResponse response = handler(request);
    times.Add(request.path, MonotonicNow() - begin_ns);
    return response;
  };
}

}  // namespace gpusonde::serve
