// SPDX-License-Identifier: Apache-2.0
#include "server/query_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "base/time.h"

namespace gpusonde::server {
namespace {

// The largest integer that JavaScript holds exactly; in microseconds the year 2255. Its nanoseconds fit
// int64.
constexpr int64_t kMaxExact = (int64_t{1} << 53) - 1;
constexpr int64_t kMaxMicros = kMaxExact;

// Longer than any useful name; bounds the database's work.
constexpr size_t kMaxFilterBytes = 1000;

// Two lists of so many, as a comparison has, fit into the 8 kB of an address (server/admission.h).
constexpr size_t kMaxProcesses = 100;

}  // namespace

Result<QueryParameters> QueryParameters::Create(
    const std::vector<std::pair<std::string, std::string>>& pairs) {
  QueryParameters parameters;
  for (const auto& [name, value] : pairs) {
    if (std::ranges::count(parameters.parameters_, name, &Parameter::name) > 0)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("parameter '{}' is given twice", name));
    parameters.parameters_.push_back({name, value});
  }
  return parameters;
}

std::optional<std::string_view> QueryParameters::TakeText(std::string_view name) {
  known_ += fmt::format("{}{}", known_.empty() ? "" : ", ", name);
  const auto found = std::ranges::find(parameters_, name, &Parameter::name);
  if (found == parameters_.end()) return std::nullopt;
  found->taken = true;
  return found->value;
}

Result<std::optional<int64_t>> QueryParameters::TakeInteger(std::string_view name, int64_t low,
                                                            int64_t high) {
  const std::optional<std::string_view> text = TakeText(name);
  if (!text.has_value()) return std::nullopt;
  const std::optional<int64_t> value = ParseNumber<int64_t>(*text);
  if (!value.has_value() || *value < low || *value > high)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("parameter '{}' takes an integer from {} to {}, not '{}'", name, low, high, *text));
  return value;
}

Result<std::optional<double>> QueryParameters::TakeNumber(std::string_view name, double low, double high) {
  const std::optional<std::string_view> text = TakeText(name);
  if (!text.has_value()) return std::nullopt;
  const std::optional<double> value = ParseNumber<double>(*text);
  // Written so that NaN is refused.
  if (!value.has_value() || !(*value >= low && *value <= high))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("parameter '{}' takes a number from {} to {}, not '{}'", name, low, high, *text));
  return value;
}

Status QueryParameters::TakeTimes(std::string_view from, std::string_view to, model::Selection& selection) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> from_us, TakeInteger(from, 0, kMaxMicros));
  ASSIGN_OR_RETURN(const std::optional<int64_t> to_us, TakeInteger(to, 0, kMaxMicros));
  if (from_us.has_value() && to_us.has_value() && *from_us >= *to_us)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("parameter '{}' ({}) must be after '{}' ({})", to, *to_us, from, *from_us));
  if (!from_us.has_value() && !to_us.has_value()) return {};
  const model::Selection open;
  selection.from_ns = from_us.has_value() ? *from_us * kNanosPerMicro : open.from_ns;
  selection.to_ns = to_us.has_value() ? *to_us * kNanosPerMicro : open.to_ns;
  return {};
}

Result<model::Selection> QueryParameters::TakeTimeRange() {
  model::Selection selection;
  TRY(TakeTimes("from_us", "to_us", selection));
  return selection;
}

Result<model::Selection> QueryParameters::TakeBase(const model::Selection& selection) {
  model::Selection base = selection;
  TRY(TakeTimes("base_from_us", "base_to_us", base));
  const std::optional<std::string_view> text = TakeText("base_process");
  if (!text.has_value()) return base;
  base.processes.clear();
  if (*text != "all") {
    ASSIGN_OR_RETURN(base.processes, TakeProcesses("base_process"));
  }
  if (base.processes != selection.processes) base.tid.reset();
  return base;
}

Result<std::optional<Id128>> QueryParameters::TakeId(std::string_view name) {
  const std::optional<std::string_view> text = TakeText(name);
  if (!text.has_value()) return std::nullopt;
  const std::optional<Id128> id = Id128::FromHex(*text);
  if (!id.has_value())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("parameter '{0}' takes the 32 hex digits of a {0}'s id, not '{1}'", name, *text));
  return id;
}

Result<std::vector<Id128>> QueryParameters::TakeProcesses(std::string_view name) {
  std::vector<Id128> processes;
  const std::optional<std::string_view> text = TakeText(name);
  if (!text.has_value()) return processes;
  for (size_t begin = 0; begin <= text->size();) {
    const size_t end = std::min(text->find(',', begin), text->size());
    const std::string_view part = text->substr(begin, end - begin);
    const std::optional<Id128> id = Id128::FromHex(part);
    if (!id.has_value())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("parameter '{}' takes the 32 hex digits of a process's id, or several with "
                              "commas between them, not '{}'",
                              name, part));
    if (std::ranges::find(processes, *id) == processes.end()) processes.push_back(*id);
    if (processes.size() > kMaxProcesses)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("parameter '{}' takes at most {} processes", name, kMaxProcesses));
    begin = end + 1;
  }
  return processes;
}

Result<bool> QueryParameters::TakeFlag(std::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> value, TakeInteger(name, 0, 1));
  return value.value_or(0) == 1;
}

Result<model::Selection> QueryParameters::TakeSelection() {
  ASSIGN_OR_RETURN(model::Selection selection, TakeTimeRange());
  ASSIGN_OR_RETURN(selection.processes, TakeProcesses("process"));
  ASSIGN_OR_RETURN(const std::optional<int64_t> tid,
                   TakeInteger("tid", 0, std::numeric_limits<int32_t>::max()));
  if (tid.has_value()) {
    if (selection.processes.size() != 1)
      return Fail(ErrorCode::kInvalidArgument,
                  "parameter 'tid' needs 'process' with one id: a thread is one of a process");
    selection.tid = static_cast<int32_t>(*tid);
  }
  if (const auto text = TakeText("filter"); text.has_value()) {
    if (text->size() > kMaxFilterBytes)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("parameter 'filter' takes at most {} bytes, not {}", kMaxFilterBytes, text->size()));
    selection.filter = *text;
  }
  ASSIGN_OR_RETURN(selection.device, TakeId("device"));
  ASSIGN_OR_RETURN(selection.stream, TakeInteger("stream", 0, kMaxExact));
  if (selection.stream.has_value() && !selection.device.has_value())
    return Fail(ErrorCode::kInvalidArgument,
                "parameter 'stream' needs 'device': a stream is one of a device");
  ASSIGN_OR_RETURN(selection.while_gpu_idle, TakeFlag("while_gpu_idle"));
  return selection;
}

Status QueryParameters::Finish() const {
  const auto unknown = std::ranges::find(parameters_, false, &Parameter::taken);
  if (unknown == parameters_.end()) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("unknown parameter '{}'; {}", unknown->name,
                  known_.empty() ? "this address takes none" : fmt::format("this address takes {}", known_)));
}

}  // namespace gpusonde::server
