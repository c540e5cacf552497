// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "mcp/selection.h"
#include "mcp/tool.h"

namespace gpusonde::mcp {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownEvidence = 12;

// The first elements; how many more there are is beside them.
void KeepFirst(Json& incident, const char* key) {
  Json& list = incident[key];
  if (list.size() <= kShownEvidence) return;
  const size_t omitted = list.size() - kShownEvidence;
  list.erase(list.begin() + kShownEvidence, list.end());
  // Only now: a new key may move those that are there, as they lie in a vector.
  incident[std::string(key) + "_omitted"] = omitted;
}

Result<std::string> RunIncidents(Source& source, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Range range, ReadRange(source, arguments));
  ASSIGN_OR_RETURN(const std::string body_text, source.Get(Target("incidents", range, "buckets=0")));
  try {
    Json body = Json::parse(body_text);
    Json found = {{"range", Json::parse(range.bounds)}, {"steps", body.at("steps")}};
    for (Json& incident : body.at("incidents")) {
      incident.erase("strips");  // none were asked for
      for (const char* list : {"account", "causes", "evidence"}) KeepFirst(incident, list);
    }
    found["incidents"] = std::move(body.at("incidents"));
    found["programs"] = body.value("programs", Json::array());
    KeepFirst(found, "programs");
    found["warnings"] = std::move(body.at("warnings"));
    found["omitted"] = {{"incidents", body.at("omitted")}};
    return found.dump();
  } catch (const Json::exception& error) {
    return Fail(ErrorCode::kInternal, error.what());
  }
}

}  // namespace

Tool IncidentsTool() {
  std::vector<Parameter> parameters = RangeParameters();
  parameters.push_back({.name = "process",
                        .description = "Only this process, by its id as `overview` lists it.",
                        .type = Parameter::Type::kId});
  parameters.push_back(LimitParameter(5, 50));
  return {
      .name = "incidents",
      .title = "Slow steps and their causes",
      .description =
          "Times in which the steps (iterations, requests) of a GPU program were slow, newest first: by how "
          "much, the most likely cause with its confidence, where the time went (account: ns per step before "
          "and during), other causes considered (score: log odds) and the evidence. No incidents although "
          "steps is more than 0: no slow-down was found, but see `programs`: what their steps usually do, "
          "and what "
          "disturbs all of them. steps is 0: the program has no regular steps. "
          "Confidence is of a model that isn't calibrated on real incidents.",
      .parameters = std::move(parameters),
      .results = {{"range", "object", "from_us and to_us of the data described; null without data."},
                  {"steps", "integer", "How many steps were measured."},
                  {"incidents", "array", "Newest first. to_us is null while one lasts."},
                  {"programs", "array",
                   "Those with steps: the parts of a usual step in ns; a sentence where one disturbs it; "
                   "kinds: common steps that launch other work, and since when."},
                  {"warnings", "array", "Signs that come before slow steps, newest first."}},
      .run = RunIncidents};
}

}  // namespace gpusonde::mcp
