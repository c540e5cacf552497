// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exporters/prometheus/live_totals.h"
#include "net/http_client.h"
#include "otlp/late_rows.h"
#include "otlp/push.h"
#include "store/store.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// Where and how often data goes out by OpenTelemetry's protocol.
struct OtlpFlags {
  std::string url;  // empty: nowhere
  std::optional<net::HttpUrl> parsed;
  std::string headers_file;
  std::string ca;
  bool insecure = false;
  double metrics_s = 15;
  double profiles_s = 60;  // 0: none
};

// Adds --otlp and the options that need it, except --otlp-profiles-every.
void AddOtlpFlags(CLI::App& command, OtlpFlags& flags);

// Adds --otlp-profiles-every to a command that has a store, after AddOtlpFlags.
void AddOtlpProfilesFlag(CLI::App& command, OtlpFlags& flags);

// Call it in the command's callback: parses what the options can't check. Throws CLI::ValidationError.
void CheckOtlpFlags(OtlpFlags& flags);

// Starts to send the totals; null without --otlp. Errors: those of otlp::ReadHeaders. `totals` must outlive
// it.
Result<std::unique_ptr<otlp::Push>> PushMetrics(const OtlpFlags& flags,
                                                exporters::prometheus::LiveTotals& totals);

// Starts to send what the store gets from now on; null without --otlp or with an interval of 0. Counts are
// shown by `totals`; `late` knows what was read. All three must outlive it.
std::unique_ptr<otlp::Push> PushProfiles(const OtlpFlags& flags, store::Store& store, otlp::LateRows& late,
                                         exporters::prometheus::LiveTotals& totals);

}  // namespace gpusonde::app
