// SPDX-License-Identifier: Apache-2.0
#include "otlp_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api_client.h"
#include "base/time.h"
#include "exporters/otlp/metrics.h"
#include "otlp/headers_file.h"
#include "otlp/profile_windows.h"
#include "server/metrics_server.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr std::string_view kMetricsPath = "/v1/metrics";
constexpr std::string_view kProfilesPath = "/v1development/profiles";
// How late rows may be stored and still be in a profile that is sent: the allowed lateness of the roll-ups.
constexpr int64_t kProfileLatenessNs = 10 * kNanosPerSecond;

otlp::Push::Options OptionsOf(const OtlpFlags& flags, const std::string& signal, std::string_view path,
                              double interval_s, exporters::prometheus::LiveTotals& totals) {
  otlp::Push::Options options{.signal = signal, .url = *flags.parsed, .render = {}};
  if (options.url.target.ends_with('/')) options.url.target.pop_back();
  options.url.target += path;
  options.headers_file = flags.headers_file;
  options.tls.ca = flags.ca;
  options.interval_ns = static_cast<int64_t>(interval_s * 1e9);
  options.on_counts = [signal, &totals](const otlp::Push::Counts& counts) {
    totals.SetPushed(signal, counts);
  };
  return options;
}

}  // namespace

void AddOtlpFlags(CLI::App& command, OtlpFlags& flags) {
  CLI::Option* const otlp = command.add_option(
      "--otlp", flags.url,
      "http[s]://HOST[:PORT][/PATH] of a receiver of OTLP/HTTP to send metrics to, and `up` "
      "profiles; http only on loopback [none]");
  command
      .add_option("--otlp-headers", flags.headers_file,
                  "File with HTTP headers for --otlp, a `Name: value` a line, such as a token; read before "
                  "each request [none]")
      ->check(Path());
  command
      .add_option("--otlp-tls-ca", flags.ca,
                  "PEM file with the CA of the receiver's certificate [the system's CAs]")
      ->check(Path());
  command.add_flag(
      "--otlp-insecure", flags.insecure,
      "Send to http:// beyond loopback: anyone on the network path can then read everything, also the "
      "headers");
  command.add_option("--otlp-metrics-every", flags.metrics_s, "Seconds between metrics for --otlp")
      ->capture_default_str()
      ->check(Number("SECONDS", 1, 3600));
  for (CLI::Option* const option : command.get_options())
    if (option->get_name().starts_with("--otlp-")) option->needs(otlp);
}

void AddOtlpProfilesFlag(CLI::App& command, OtlpFlags& flags) {
  command
      .add_option("--otlp-profiles-every", flags.profiles_s,
                  "Seconds between profiles for --otlp; 0: no profiles")
      ->capture_default_str()
      ->check(Number("SECONDS", 1, 3600, true))
      ->needs(command.get_option("--otlp"));
}

void CheckOtlpFlags(OtlpFlags& flags) {
  if (flags.url.empty()) return;
  const auto url = net::HttpUrl::Parse(flags.url);
  if (!url.has_value()) throw CLI::ValidationError("--otlp", url.error().message);
  if (url->target.contains('?'))
    throw CLI::ValidationError("--otlp", fmt::format("'{}' must not have a query", flags.url));
  if (!url->tls && !IsThisMachine(url->host) && !flags.insecure)
    throw CLI::ValidationError(
        "--otlp", fmt::format("'{}' would send the headers and all data unencrypted: use https://, or an SSH "
                              "tunnel to the receiver's address on loopback; --otlp-insecure allows it",
                              flags.url));
  RefuseIgnoredTls("--otlp", *url, "--otlp-tls-ca", flags.ca);
  flags.parsed = *url;
}

Result<std::unique_ptr<otlp::Push>> PushMetrics(const OtlpFlags& flags,
                                                exporters::prometheus::LiveTotals& totals) {
  if (!flags.parsed.has_value()) return nullptr;
  if (!flags.headers_file.empty()) TRY(otlp::ReadHeaders(flags.headers_file));
  server::ReadOwnUse();  // notes the start
  otlp::Push::Options options = OptionsOf(flags, "metrics", kMetricsPath, flags.metrics_s, totals);
  options.render = [&totals](bool /*last*/) -> Result<std::vector<otlp::Request>> {
    exporters::OtlpMetrics metrics =
        exporters::RenderOtlpMetrics(totals, MonotonicNow(), EpochNow(), server::ReadOwnUse());
    return std::vector<otlp::Request>{{.body = std::move(metrics.request), .items = metrics.data_points}};
  };
  return std::make_unique<otlp::Push>(std::move(options));
}

std::unique_ptr<otlp::Push> PushProfiles(const OtlpFlags& flags, store::Store& store, otlp::LateRows& late,
                                         exporters::prometheus::LiveTotals& totals) {
  if (!flags.parsed.has_value() || flags.profiles_s == 0) return nullptr;
  otlp::Push::Options options = OptionsOf(flags, "profiles", kProfilesPath, flags.profiles_s, totals);
  options.render = [windows = otlp::ProfileWindows(store, EpochNow()), &late](bool last) mutable {
    const int64_t until_ns = EpochNow() - (last ? 0 : kProfileLatenessNs);
    late.BeginReading(until_ns);
    return windows.Render(until_ns);
  };
  return std::make_unique<otlp::Push>(std::move(options));
}

}  // namespace gpusonde::app
