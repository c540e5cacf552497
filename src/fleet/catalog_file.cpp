// SPDX-License-Identifier: Apache-2.0
#include "fleet/catalog_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"

namespace gpusonde::fleet {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, "catalog: " + std::move(message));
}

// Rounding adds at most √256/2 = 8 to the length of a fingerprint.
constexpr int64_t kMaxSquare = int64_t{kFingerprintLength + 8} * (kFingerprintLength + 8);

Result<Fingerprint> ParseFingerprint(const json& values, const std::string& name) {
  if (!values.is_array() || values.size() != kFeatures)
    return Invalid(fmt::format("the fingerprint of {} is not an array of {} numbers", name, kFeatures));
  Fingerprint fingerprint{};
  int64_t square = 0;
  for (size_t i = 0; i < kFeatures; ++i) {
    if (!values[i].is_number_integer() || values[i] < -kFingerprintLength - 8 ||
        values[i] > kFingerprintLength + 8)
      return Invalid(fmt::format("number {} of the fingerprint of {} is not a whole number of at most {}", i,
                                 name, kFingerprintLength + 8));
    fingerprint[i] = values[i].get<int16_t>();
    square += int64_t{fingerprint[i]} * fingerprint[i];
  }
  if (square > kMaxSquare)
    return Invalid(fmt::format("the fingerprint of {} is longer than {}", name, kFingerprintLength));
  return fingerprint;
}

Result<Catalog::Application> ParseApplication(const json& value) {
  if (!value.is_object() || value.size() != 2 || !value.contains("name") || !value["name"].is_string() ||
      !value.contains("fingerprint"))
    return Invalid("an application is not an object of name and fingerprint");
  Catalog::Application application{.name = value["name"].get<std::string>()};
  if (application.name.empty() || application.name.size() > kMaxApplicationName)
    return Invalid(
        fmt::format("a name has {} bytes instead of 1 to {}", application.name.size(), kMaxApplicationName));
  ASSIGN_OR_RETURN(application.fingerprint,
                   ParseFingerprint(value["fingerprint"], Printable(application.name)));
  return application;
}

}  // namespace

std::string ToJson(const Catalog& catalog) {
  JsonWriter out;
  out.BeginObject().Field("version", kVersion).Key("applications").BeginArray();
  for (const Catalog::Application& application : catalog.applications) {
    out.BeginObject().Field("name", application.name).Key("fingerprint").BeginArray();
    for (const int16_t feature : application.fingerprint) out.Value(int32_t{feature});
    out.EndArray().EndObject();
  }
  return out.EndArray().EndObject().Take();
}

Result<Catalog> ParseCatalog(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("version") || !document["version"].is_number_integer())
    return Invalid("not a JSON object with a version; `gpusonde fleet catalog` makes one");
  if (document["version"] != kVersion)
    return Fail(ErrorCode::kTooNew, fmt::format("catalog: version {}, this gpusonde reads {}",
                                                document["version"].dump(), kVersion));
  if (document.size() != 2 || !document.contains("applications") || !document["applications"].is_array())
    return Invalid("has other keys than version and applications");
  const json& applications = document["applications"];
  if (applications.empty() || applications.size() > kMaxApplications)
    return Invalid(fmt::format("{} applications instead of 1 to {}", applications.size(), kMaxApplications));
  Catalog catalog;
  std::unordered_set<std::string> names;
  for (const json& value : applications) {
    ASSIGN_OR_RETURN(Catalog::Application application, ParseApplication(value));
    if (!names.insert(application.name).second)
      return Invalid(fmt::format("{} is there twice", Printable(application.name)));
    catalog.applications.push_back(std::move(application));
  }
  return catalog;
}

}  // namespace gpusonde::fleet
