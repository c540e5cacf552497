// SPDX-License-Identifier: Apache-2.0
#include "fleet/catalog_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json_depth.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/text.h"

namespace gpusonde::fleet {
namespace {

constexpr int kVersion = 1;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, "catalog: " + std::move(message));
}

Result<Fingerprint> ParseFingerprint(const nlohmann::json& values, const std::string& name) {
  std::vector<int64_t> features;
  if (values.is_array())
    for (const nlohmann::json& value : values) {
      const std::optional<int64_t> feature = ParseNumber<int64_t>(value.dump());
      if (!feature.has_value())
        return Invalid(fmt::format("number {} of the fingerprint of {} is not whole", features.size(), name));
      features.push_back(*feature);
    }
  auto fingerprint = ReadFingerprint(features);
  if (!fingerprint.has_value())
    return Invalid(fmt::format("the fingerprint of {} {}", name, fingerprint.error().message));
  return fingerprint;
}

Result<Catalog::Application> ParseApplication(const nlohmann::json& value) {
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
  if (IsTooDeep(text)) return Invalid(fmt::format("nests more than {} levels deep", kMaxJsonDepth));
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("version") || !document["version"].is_number_integer())
    return Invalid("not a JSON object with a version; `gpusonde fleet catalog` makes one");
  if (document["version"] != kVersion)
    return Fail(ErrorCode::kTooNew, fmt::format("catalog: version {}, this gpusonde reads {}",
                                                document["version"].dump(), kVersion));
  if (document.size() != 2 || !document.contains("applications") || !document["applications"].is_array())
    return Invalid("has other keys than version and applications");
  const nlohmann::json& applications = document["applications"];
  if (applications.empty() || applications.size() > kMaxApplications)
    return Invalid(fmt::format("{} applications instead of 1 to {}", applications.size(), kMaxApplications));
  Catalog catalog;
  std::unordered_set<std::string> names;
  for (const nlohmann::json& value : applications) {
    ASSIGN_OR_RETURN(Catalog::Application application, ParseApplication(value));
    if (!names.insert(application.name).second)
      return Invalid(fmt::format("{} is there twice", Printable(application.name)));
    catalog.applications.push_back(std::move(application));
  }
  return catalog;
}

}  // namespace gpusonde::fleet
