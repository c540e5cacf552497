// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/description.h"

#include <fmt/format.h>
#include <sodium.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/fd.h"
#include "base/json_depth.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/text.h"
#include "fleet/catalog_file.h"
#include "fleet/characteristics.h"
#include "fleet/roles/message.h"

namespace gpusonde::fleet {
namespace {

using nlohmann::json;

constexpr int kDescriptionVersion = 1;
constexpr size_t kMaxDescriptionBytes = size_t{4} << 20;
constexpr size_t kMaxName = 64;
constexpr uint64_t kMaxPeriodS = 31'622'400;  // a year

std::unexpected<Error> Invalid(const std::string& message) {
  return Fail(ErrorCode::kInvalidArgument, "fleet description: " + message);
}

Result<std::string> Text(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return Invalid(fmt::format("no text '{}'", key));
  std::string text = found->get<std::string>();
  if (text.empty() || text.size() > kMaxName || text != Printable(text))
    return Invalid(fmt::format("'{}' is not 1 to {} printable characters", key, kMaxName));
  return text;
}

template <class Integer = uint32_t>
Result<Integer> Whole(const json& object, const char* key, uint64_t lowest, uint64_t highest) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned() || found->get<uint64_t>() < lowest ||
      found->get<uint64_t>() > highest)
    return Invalid(fmt::format("'{}' is not a whole number from {} to {}", key, lowest, highest));
  return static_cast<Integer>(found->get<uint64_t>());
}

Result<double> Number(const json& object, const char* key, double above, double highest) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number() || !(found->get<double>() > above) ||
      !(found->get<double>() <= highest))
    return Invalid(fmt::format("'{}' is not a number above {} and at most {}", key, above, highest));
  return found->get<double>();
}

Result<VerifyKey> Key(const json& object, const char* key) {
  const auto found = object.find(key);
  VerifyKey read{};
  if (found == object.end() || !found->is_string() || !FromHex(found->get<std::string>(), read))
    return Invalid(
        fmt::format("'{}' is not a key of 64 hex digits, as `gpusonde fleet keygen` prints it", key));
  return read;
}

Result<std::vector<Description::Decryptor>> Decryptors(const json& object) {
  const auto found = object.find("decryptors");
  if (found == object.end() || !found->is_array() || found->empty() || found->size() > kMaxDecryptors)
    return Invalid(fmt::format("'decryptors' is not an array of 1 to {}", kMaxDecryptors));
  std::vector<Description::Decryptor> decryptors;
  std::set<std::string> names;
  std::set<VerifyKey> keys;
  for (const json& value : *found) {
    if (!value.is_object() || value.size() != 2)
      return Invalid("a decryptor has other keys than name and key");
    Description::Decryptor decryptor;
    ASSIGN_OR_RETURN(decryptor.name, Text(value, "name"));
    ASSIGN_OR_RETURN(decryptor.key, Key(value, "key"));
    if (!names.insert(decryptor.name).second || !keys.insert(decryptor.key).second)
      return Invalid(fmt::format("the decryptor {}, or its key, is there twice", decryptor.name));
    decryptors.push_back(std::move(decryptor));
  }
  return decryptors;
}

}  // namespace

Layout Description::layout() const {
  const auto applications = static_cast<uint32_t>(catalog.applications.size());
  return {.groups = groups,
          .pages = (applications + kApplicationsPerPage - 1) / kApplicationsPerPage,
          .cohorts = cohorts};
}

FleetId Description::Id() const {
  const std::string json = ToJson(*this);
  FleetId id;
  crypto_generichash(id.data(), id.size(), reinterpret_cast<const uint8_t*>(json.data()), json.size(),
                     nullptr, 0);
  return id;
}

std::string ToJson(const Description& description) {
  JsonWriter out;
  out.BeginObject().Field("version", kDescriptionVersion).Field("name", description.name);
  out.Field("period_s", int64_t{description.period_s}).Field("groups", int64_t{description.groups});
  out.Field("cohorts", int64_t{description.cohorts});
  out.Field("min_reports", static_cast<int64_t>(description.rules.min_reports));
  out.Field("epsilon", description.rules.epsilon).Field("delta", description.rules.delta);
  out.Field("sigma", static_cast<int64_t>(description.rules.sigma));
  out.Field("authority", ToHex(description.authority)).Key("decryptors").BeginArray();
  for (const Description::Decryptor& decryptor : description.decryptors)
    out.BeginObject().Field("name", decryptor.name).Field("key", ToHex(decryptor.key)).EndObject();
  out.EndArray().Key("catalog").Raw(ToJson(description.catalog));
  return out.EndObject().Take();
}

Result<Description> ParseDescription(std::string_view text) {
  if (IsTooDeep(text)) return Invalid(fmt::format("nests more than {} levels deep", kMaxJsonDepth));
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("version") || !document["version"].is_number_integer())
    return Invalid("not a JSON object with a version; `gpusonde fleet init` makes one");
  if (document["version"] != kDescriptionVersion)
    return Fail(ErrorCode::kTooNew, fmt::format("fleet description: version {}, this gpusonde reads {}",
                                                document["version"].dump(), kDescriptionVersion));
  Description read;
  ASSIGN_OR_RETURN(read.name, Text(document, "name"));
  ASSIGN_OR_RETURN(read.period_s, Whole(document, "period_s", 1, kMaxPeriodS));
  ASSIGN_OR_RETURN(read.groups, Whole(document, "groups", 1, OpenCharacteristics()));
  ASSIGN_OR_RETURN(read.cohorts, Whole(document, "cohorts", 1, 10'000));
  // Sums are correct up to 8 million reports (privacy::NoisySum).
  ASSIGN_OR_RETURN(read.rules.min_reports, Whole<uint64_t>(document, "min_reports", 2, 8'000'000));
  ASSIGN_OR_RETURN(read.rules.sigma, Whole<uint64_t>(document, "sigma", privacy::kNoiseSigma, 1'000'000));
  ASSIGN_OR_RETURN(read.rules.epsilon, Number(document, "epsilon", 0, 1000));
  ASSIGN_OR_RETURN(read.rules.delta, Number(document, "delta", 0, 1e-6));
  ASSIGN_OR_RETURN(read.authority, Key(document, "authority"));
  ASSIGN_OR_RETURN(read.decryptors, Decryptors(document));
  if (!document.contains("catalog")) return Invalid("no 'catalog'");
  ASSIGN_OR_RETURN(read.catalog,
                   ParseCatalog(document["catalog"].dump(-1, ' ', false, json::error_handler_t::replace)));
  // A key that is not read could be a rule that is not kept.
  if (const json again = json::parse(ToJson(read)); again != document)
    return Invalid("has keys that this gpusonde doesn't know");
  return read;
}

Result<Description> ReadDescription(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxDescriptionBytes));
  Result<Description> read = ParseDescription(text);
  if (!read.has_value()) return Fail(std::move(read).error().With(path));
  return read;
}

bool FromHex(std::string_view text, std::span<uint8_t> bytes) {
  size_t read = 0;
  const char* end = nullptr;
  return text.size() == 2 * bytes.size() &&
         sodium_hex2bin(bytes.data(), bytes.size(), text.data(), text.size(), nullptr, &read, &end) == 0 &&
         read == bytes.size() && end == text.data() + text.size();
}

}  // namespace gpusonde::fleet
