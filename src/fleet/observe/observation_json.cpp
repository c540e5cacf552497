// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/json_depth.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/text.h"
#include "fleet/characteristics.h"
#include "fleet/observe/observation.h"

namespace gpusonde::fleet {
namespace {

using nlohmann::json;

constexpr int kObservationsVersion = 1;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, "observations: " + std::move(message));
}

// An array of whole numbers; nothing if it is anything else.
std::optional<std::vector<int64_t>> WholeNumbers(const json& values) {
  if (!values.is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const json& value : values) {
    const std::optional<int64_t> number = ParseNumber<int64_t>(value.dump());
    if (!number.has_value()) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<Row> ParseRow(const json& values) {
  const auto numbers = WholeNumbers(values);
  Row row{};
  if (!numbers.has_value() || numbers->size() != row.size()) return std::nullopt;
  for (size_t i = 0; i < row.size(); ++i) {
    if ((*numbers)[i] < 0 || (*numbers)[i] > privacy::kReportWeight) return std::nullopt;
    row[i] = static_cast<uint32_t>((*numbers)[i]);
  }
  const uint32_t bins = std::accumulate(row.begin(), row.begin() + kBins, uint32_t{0});
  if (bins != privacy::kReportWeight || row[kBins] != privacy::kReportWeight) return std::nullopt;
  return row;
}

Status ParseMeasured(const json& value, Observation& observation) {
  const std::string gpu = Printable(observation.gpu_uuid);
  if (!value["busy"].is_boolean() || !value["kernels"].is_number_unsigned() ||
      value["kernels"].get<uint64_t>() > uint64_t{INT64_MAX})
    return Invalid(
        fmt::format("of GPU {}, busy is not true or false, or kernels is not a whole number", gpu));
  observation.is_busy = value["busy"].get<bool>();
  observation.kernels = value["kernels"].get<uint64_t>();
  const auto features = WholeNumbers(value["fingerprint"]);
  if (!features.has_value())
    return Invalid(fmt::format("the fingerprint of GPU {} is not an array of whole numbers", gpu));
  auto fingerprint = ReadFingerprint(*features);
  if (!fingerprint.has_value())
    return Invalid(fmt::format("the fingerprint of GPU {} {}", gpu, fingerprint.error().message));
  observation.fingerprint = *fingerprint;
  const json& rows = value["rows"];
  if (!rows.is_array() || rows.size() != OpenCharacteristics())
    return Invalid(
        fmt::format("GPU {} has not {} rows, a row per group of characteristics; use the same "
                    "version of gpusonde on both sides",
                    gpu, OpenCharacteristics()));
  for (const json& values : rows) {
    const std::optional<Row> row = ParseRow(values);
    if (!row.has_value())
      return Invalid(fmt::format("row {} of GPU {} is not one of {} bins that sum to {}",
                                 observation.rows.size(), gpu, kBins, privacy::kReportWeight));
    observation.rows.push_back(*row);
  }
  return {};
}

Result<Observation> ParseObservation(const json& value) {
  constexpr std::array kKeys = {"gpu_uuid", "gpu_name", "busy", "kernels", "fingerprint", "rows"};
  if (!value.is_object() || value.size() != kKeys.size() ||
      !std::ranges::all_of(kKeys, [&](const char* key) { return value.contains(key); }))
    return Invalid("a GPU's is not an object of gpu_uuid, gpu_name, busy, kernels, fingerprint and rows");
  if (!value["gpu_uuid"].is_string() || value["gpu_uuid"].get_ref<const std::string&>().empty() ||
      !value["gpu_name"].is_string())
    return Invalid("a gpu_uuid is empty, or it or a gpu_name is not a text");
  Observation observation{.gpu_uuid = value["gpu_uuid"].get<std::string>(),
                          .gpu_name = value["gpu_name"].get<std::string>(),
                          .rows = {}};
  TRY(ParseMeasured(value, observation));
  return observation;
}

}  // namespace

std::string ToJson(const Observations& observations) {
  JsonWriter out;
  out.BeginObject()
      .Field("version", kObservationsVersion)
      .Field("observed_ns", observations.observed_ns)
      .Key("observations")
      .BeginArray();
  for (const Observation& observation : observations.gpus) {
    out.BeginObject()
        .Field("gpu_uuid", observation.gpu_uuid)
        .Field("gpu_name", observation.gpu_name)
        .Field("busy", observation.is_busy)
        .Field("kernels", static_cast<int64_t>(observation.kernels));
    out.Key("fingerprint").BeginArray();
    for (const int16_t feature : observation.fingerprint) out.Value(int32_t{feature});
    out.EndArray().Key("rows").BeginArray();
    for (const Row& row : observation.rows) {
      out.BeginArray();
      for (const uint32_t bin : row) out.Value(int64_t{bin});
      out.EndArray();
    }
    out.EndArray().EndObject();
  }
  return out.EndArray().EndObject().Take();
}

Result<Observations> ParseObservations(std::string_view text) {
  if (IsTooDeep(text)) return Invalid(fmt::format("nests more than {} levels deep", kMaxJsonDepth));
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("version") || !document["version"].is_number_integer())
    return Invalid("not a JSON object with a version, as /api/v1/fleet/observations answers");
  if (document["version"] != kObservationsVersion)
    return Fail(ErrorCode::kTooNew, fmt::format("observations: version {}, this gpusonde reads {}",
                                                document["version"].dump(), kObservationsVersion));
  if (document.size() != 3 || !document.contains("observed_ns") || !document.contains("observations") ||
      !document["observations"].is_array())
    return Invalid("has other keys than version, observed_ns and observations");
  const auto observed_ns = ParseNumber<int64_t>(document["observed_ns"].dump());
  if (!observed_ns.has_value() || *observed_ns < 0)
    return Invalid("observed_ns is not a whole number of nanoseconds");
  const json& values = document["observations"];
  if (values.size() > kMaxObservedGpus)
    return Invalid(fmt::format("{} GPUs, at most {} are possible", values.size(), kMaxObservedGpus));
  Observations observations{.observed_ns = *observed_ns, .gpus = {}};
  std::unordered_set<std::string> gpus;
  for (const json& value : values) {
    ASSIGN_OR_RETURN(Observation observation, ParseObservation(value));
    if (!gpus.insert(observation.gpu_uuid).second)
      return Invalid(fmt::format("GPU {} is there twice", Printable(observation.gpu_uuid)));
    observations.gpus.push_back(std::move(observation));
  }
  return observations;
}

}  // namespace gpusonde::fleet
