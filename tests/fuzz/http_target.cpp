// SPDX-License-Identifier: Apache-2.0
// Parsers of a request's first line, Host and Accept-Encoding headers, and of addresses on the command line.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "server/accept_encoding.h"
#include "server/compare_selections.h"
#include "server/listen_address.h"
#include "server/query_parameters.h"
#include "server/url.h"
#include "server/usage_question.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde::server;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (HostWithoutPort(text).size() > text.size()) std::abort();
  (void)AcceptsGzip(text);
  if (const auto address = ParseListenAddress(text); address.has_value()) {
    const auto again = ParseListenAddress(address->ToText());
    if (!again.has_value() || again->ip != address->ip || again->port != address->port) std::abort();
  }
  const auto target = ParseTarget(text);
  if (!target.has_value()) return 0;
  if (target->path.empty() || target->path.front() != '/') std::abort();
  if (target->path.find('\0') != std::string::npos) std::abort();
  for (const bool whole : {false, true}) {
    auto parameters = QueryParameters::Create(target->query);
    if (!parameters.has_value()) return 0;
    const auto selection = whole ? parameters->TakeSelection() : parameters->TakeTimeRange();
    if (!selection.has_value() && selection.error().message.empty()) std::abort();
    (void)parameters->TakeText("search");
    (void)parameters->TakeId("function");
    (void)parameters->TakeFlag("idle");
    (void)parameters->Finish();
  }
  auto compared = QueryParameters::Create(target->query);
  if (const auto question = TakeComparisonQuestion(*compared); question.has_value()) {
    const auto& [a, b] = std::pair(question->a, question->b.selection);
    if (a.from_ns == b.from_ns && a.to_ns == b.to_ns && a.processes == b.processes) std::abort();
    for (const auto& side : {a, b})
      if (side.from_ns >= side.to_ns || (side.tid.has_value() && side.processes.size() != 1)) std::abort();
  }
  auto summed = QueryParameters::Create(target->query);
  if (const auto question = TakeUsageQuestion(*summed);
      !question.has_value() && question.error().message.empty())
    std::abort();
  return 0;
}
