// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <system_error>
#include <utility>

#include "base/heap.h"
#include "base/time.h"

namespace gpusonde::server {
namespace {

namespace prometheus = exporters::prometheus;

double InSeconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Of this process and of its children that have ended.
double CpuSeconds() {
  double total = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (::getrusage(who, &usage) == 0) total += InSeconds(usage.ru_utime) + InSeconds(usage.ru_stime);
  }
  return total;
}

}  // namespace

prometheus::OwnUse ReadOwnUse() {
  static const double started_seconds = static_cast<double>(EpochNow()) / 1e9;
  return {.cpu_seconds = CpuSeconds(), .memory_bytes = ResidentBytes(), .started_seconds = started_seconds};
}

HttpHandler MetricsHandler(const prometheus::LiveTotals& totals) {
  ReadOwnUse();  // notes the start
  return [&totals](const HttpRequest& request) {
    const prometheus::Format format = prometheus::FormatFor(request.accept);
    return HttpResponse{
        .content_type = std::string(prometheus::ContentType(format)),
        .body = std::make_shared<const std::string>(totals.Render(format, MonotonicNow(), ReadOwnUse()))};
  };
}

HttpHandler AnsweringHealth(HttpHandler others) {
  return [others = std::move(others)](const HttpRequest& request) {
    return request.path == "/healthz" ? PlainResponse("ok\n") : others(request);
  };
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const prometheus::LiveTotals& totals,
                                                            const Options& options) {
  const auto not_here = [](const HttpRequest& request) {
    return ErrorResponse({ErrorCode::kNotFound,
                          fmt::format("there is no '{}' here, only /metrics and /healthz", request.path)});
  };
  const auto api = [metrics = MetricsHandler(totals), not_here](const HttpRequest& request) {
    return request.path == "/metrics" ? metrics(request) : not_here(request);
  };
  ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> server,
      HttpServer::Create(
          {.listen = options.listen, .guard = options.guard, .get_scope = Scope::kMetrics, .workers = 1},
          {.api = api, .files = AnsweringHealth(not_here), .uploads = {}}));
  try {
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(server)));
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("can't start a thread for the metrics: {}", error.what()));
  }
}

MetricsServer::MetricsServer(std::unique_ptr<HttpServer> server)
    : server_(std::move(server)), thread_([this] { server_->Run(); }) {}

MetricsServer::~MetricsServer() {
  server_->Stop();
  thread_.join();
}

std::string MetricsServer::Url() const { return server_->Url() + "metrics"; }

}  // namespace gpusonde::server
