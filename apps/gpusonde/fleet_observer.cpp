// SPDX-License-Identifier: Apache-2.0
#include "fleet_observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string_view>

#include "base/json_depth.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/time.h"
#include "fleet/unknown.h"

namespace gpusonde::app {
namespace {

fleet::Work ToWork(const fleet::Observation& seen, const fleet::Catalog& catalog) {
  const fleet::Match match = fleet::BestMatch(fleet::Scores(catalog, seen.fingerprint));
  fleet::Work work{.finding = {.is_busy = seen.is_busy,
                               .is_known = match.is_known,
                               .application = match.application,
                               .signature = 0},
                   .rows = seen.rows};
  if (seen.is_busy && !match.is_known) work.finding.signature = fleet::SignatureOf(seen.fingerprint);
  return work;
}

}  // namespace

Result<std::vector<std::string>> FleetObserver::Hosts() const {
  if (hosts_.empty()) return std::vector<std::string>{""};
  std::vector<std::string> names;
  if (hosts_ != "all") {
    for (const auto name : hosts_ | std::views::split(',')) names.emplace_back(std::string_view(name));
    return names;
  }
  ASSIGN_OR_RETURN(const std::string body, AskApi(server_, "hosts"));
  const nlohmann::json answer =
      IsTooDeep(body) ? nlohmann::json() : nlohmann::json::parse(body, nullptr, false);
  if (answer.is_object() && answer.contains("hosts") && answer["hosts"].is_array())
    for (const nlohmann::json& host : answer["hosts"])
      if (host.is_object() && host.contains("name") && host["name"].is_string())
        names.push_back(host["name"].get<std::string>());
  if (names.empty())
    return Fail(ErrorCode::kUnavailable, fmt::format("`gpusonde serve` at {}:{} has no hosts yet",
                                                     server_.url.host, server_.url.port));
  return names;
}

bool FleetObserver::IsObserved(int64_t observed_ns) const {
  return observed_ns >= (to_ms_ - from_ms_) * kNanosPerMilli / 2;
}

Status FleetObserver::ReadHost(const std::string& host) {
  ApiServer server = server_;
  server.host = host;
  ASSIGN_OR_RETURN(
      const std::string body,
      AskApi(server, fmt::format("fleet/observations?from_us={}&to_us={}", from_ms_ * 1000, to_ms_ * 1000)));
  ASSIGN_OR_RETURN(const fleet::Observations observations, fleet::ParseObservations(body));
  if (!IsObserved(observations.observed_ns)) is_complete_ = false;
  for (const fleet::Observation& observation : observations.gpus)
    gpus_[observation.gpu_uuid] = {
        .observation = observation, .host = host, .observed_ns = observations.observed_ns};
  return {};
}

Status FleetObserver::Read(int64_t from_ms, int64_t to_ms, int64_t now_ms) {
  if (from_ms == from_ms_ && to_ms == to_ms_ && (is_complete_ || now_ms < ask_again_ms_)) return answered_;
  from_ms_ = from_ms;
  to_ms_ = to_ms;
  ask_again_ms_ = now_ms + (to_ms - from_ms) / 10;
  is_complete_ = true;
  gpus_.clear();
  const Status read = ReadHosts();
  if (!read.has_value()) is_complete_ = false;
  answered_ = gpus_.empty() ? read : Status();
  return answered_;
}

// Those that answer; the error is of the last one that doesn't.
Status FleetObserver::ReadHosts() {
  ASSIGN_OR_RETURN(const std::vector<std::string> hosts, Hosts());
  Status done;
  for (const std::string& host : hosts) {
    Status one = ReadHost(host);
    if (one.has_value()) continue;
    if (hosts.size() > 1) LogWarn("host {}: {}", Printable(host), one.error().message);
    done = std::move(one);
  }
  return done;
}

std::vector<std::string> FleetObserver::Gpus() const {
  std::vector<std::string> uuids;
  for (const auto& [uuid, gpu] : gpus_) uuids.push_back(uuid);
  return uuids;
}

Result<fleet::Work> FleetObserver::WorkOf(const std::string& gpu) const {
  const auto found = gpus_.find(gpu);
  if (found == gpus_.end())
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("nothing is known of GPU {} in this epoch; there is no report of it", Printable(gpu)));
  const auto& [observation, host, observed_ns] = found->second;
  if (!IsObserved(observed_ns))
    return Fail(ErrorCode::kUnavailable,
                fmt::format("gpusonde ran {}for {} s of the epoch's {} s; there is no report of GPU {}",
                            host.empty() ? "" : fmt::format("on {} ", Printable(host)),
                            observed_ns / kNanosPerSecond, (to_ms_ - from_ms_) / 1000, Printable(gpu)));
  return ToWork(observation, catalog_);
}

}  // namespace gpusonde::app
