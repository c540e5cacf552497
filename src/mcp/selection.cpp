// SPDX-License-Identifier: Apache-2.0
#include "mcp/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/json_writer.h"
#include "base/time.h"
#include "server/url.h"

namespace gpusonde::mcp {
namespace {

using nlohmann::json;

constexpr int64_t kMicrosPerSecond = kNanosPerSecond / kNanosPerMicro;

void Add(std::string& query, std::string_view name, std::string_view value) {
  query += fmt::format("{}{}={}", query.empty() ? "" : "&", name, server::EncodeQueryValue(value));
}

}  // namespace

std::vector<Parameter> RangeParameters() {
  return {
      {.name = "from_us", .description = "Begin, in microseconds since the Unix epoch; default: all data."},
      {.name = "to_us", .description = "End, exclusive, in microseconds since the Unix epoch."},
      {.name = "last_s",
       .description = "Instead of from_us: this many seconds before to_us or the newest data; "
                      "default for live data, unless from_us is given: 900.",
       .min = 1,
       .max = int64_t{366} * 86400}};
}

std::vector<Parameter> SelectionParameters() {
  std::vector<Parameter> parameters = RangeParameters();
  parameters.push_back({.name = "process",
                        .description = "Only this process, by its id (not the pid) as `overview` lists it.",
                        .type = Parameter::Type::kId});
  parameters.push_back({.name = "filter",
                        .description = "Only stacks with a function whose name contains this text.",
                        .type = Parameter::Type::kText});
  return parameters;
}

Result<Range> ReadRange(Source& source, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::string body, source.Get("overview"));
  const json overview = json::parse(body, nullptr, false);
  const auto time_of = [&overview](const char* key) -> std::optional<int64_t> {
    if (!overview.is_object() || !overview.contains(key) || !overview[key].is_number_integer())
      return std::nullopt;
    return overview[key].get<int64_t>();
  };
  const bool live = overview.is_object() && overview.contains("live") && overview["live"] == true;
  std::optional<int64_t> from_us = arguments.Integer("from_us");
  std::optional<int64_t> to_us = arguments.Integer("to_us");
  std::optional<int64_t> last_s = arguments.Integer("last_s");
  if (last_s.has_value() && from_us.has_value())
    return Fail(ErrorCode::kInvalidArgument, "give from_us or last_s, not both");
  if (live && !from_us.has_value() && !last_s.has_value()) last_s = kDefaultLiveSeconds;
  if (last_s.has_value() && !to_us.has_value()) to_us = time_of("to_us");
  if (last_s.has_value() && to_us.has_value()) {
    const int64_t last_us = *last_s * kMicrosPerSecond;
    from_us = std::max(*to_us, last_us) - last_us;  // at least 0, whatever a server says
  }
  if (from_us.has_value() && to_us.has_value() && *from_us >= *to_us)
    return Fail(ErrorCode::kInvalidArgument, "the time range is empty: it must begin before it ends");
  Range range;
  if (from_us.has_value()) Add(range.query, "from_us", std::to_string(*from_us));
  if (to_us.has_value()) Add(range.query, "to_us", std::to_string(*to_us));
  if (const std::string process = arguments.Text("process"); !process.empty())
    Add(range.query, "process", process);
  if (const std::string filter = arguments.Text("filter"); !filter.empty())
    Add(range.query, "filter", filter);
  JsonWriter said;
  range.bounds = said.BeginObject()
                     .Field("from_us", from_us.has_value() ? from_us : time_of("from_us"))
                     .Field("to_us", to_us.has_value() ? to_us : time_of("to_us"))
                     .EndObject()
                     .Take();
  return range;
}

std::string Target(const std::string& path, const Range& range, const std::string& more) {
  const std::string query =
      range.query.empty() || more.empty() ? range.query + more : range.query + "&" + more;
  return query.empty() ? path : path + "?" + query;
}

}  // namespace gpusonde::mcp
