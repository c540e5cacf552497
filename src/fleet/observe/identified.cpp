// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/identified.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/counted.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/text_table.h"

namespace gpusonde::fleet {
namespace {

// nvidia-smi takes as few, too; all of it is in the JSON.
constexpr size_t kUuidShown = 12;

// To what is shown, downwards, so that what is below the floor isn't shown as at it.
double Rounded(double cosine, double digits) { return std::floor(cosine * digits) / digits; }

std::string Named(const Catalog& catalog, const Identified::Candidate& candidate) {
  return fmt::format("{} {:.2f}", Printable(catalog.applications[candidate.application].name),
                     Rounded(CosineOf(candidate.score), 100));
}

// "llama", "unknown", or why there is nothing to identify.
std::string FindingText(const Catalog& catalog, const Observation& observation,
                        const Identified& identified) {
  if (!observation.is_busy) return "idle";
  if (identified.nearest.empty()) return "no kernels";
  return identified.application.has_value() ? Printable(catalog.applications[*identified.application].name)
                                            : "unknown";
}

}  // namespace

double CosineOf(int32_t score) {
  constexpr double kOwnScore = double{kFingerprintLength} * kFingerprintLength;
  return std::clamp(score / kOwnScore, -1.0, 1.0);
}

Identified Identify(const Catalog& catalog, const Fingerprint& fingerprint) {
  Identified identified;
  if (fingerprint == Fingerprint{}) return identified;
  const std::vector<int32_t> scores = Scores(catalog, fingerprint);
  for (uint32_t i = 0; i < scores.size(); ++i) identified.nearest.push_back({i, scores[i]});
  std::ranges::stable_sort(identified.nearest, std::greater(), &Identified::Candidate::score);
  identified.nearest.resize(std::min<size_t>(identified.nearest.size(), 2));
  if (const Match best = BestMatch(scores); best.is_known) identified.application = best.application;
  return identified;
}

std::string IdentifiedText(const Catalog& catalog, std::span<const Observation> observations,
                           const std::string& named, const Terminal& terminal) {
  TextColumn uuid{.title = "GPU"};
  TextColumn name{.title = "NAME", .leave_out = 2, .min_width = 8, .max_width = 24};
  TextColumn kernels{.title = "KERNELS", .right = true, .leave_out = 3};
  TextColumn application{.title = "APPLICATION", .min_width = 12, .max_width = 40};
  TextColumn score{.title = "SCORE", .right = true};
  TextColumn nearest{.title = "NEAREST OTHER", .leave_out = 1, .min_width = 12, .max_width = 40};
  for (const Observation& observation : observations) {
    const Identified identified = Identify(catalog, observation.fingerprint);
    uuid.cells.push_back(Shorten(Printable(observation.gpu_uuid), kUuidShown));
    name.cells.push_back(Printable(observation.gpu_name));
    kernels.cells.push_back(fmt::format("{}", observation.kernels));
    application.cells.push_back(FindingText(catalog, observation, identified));
    const bool known = identified.application.has_value();
    score.cells.push_back(
        known ? fmt::format("{:.2f}", Rounded(CosineOf(identified.nearest.front().score), 100)) : "");
    const size_t other = known ? 1 : 0;
    nearest.cells.push_back(other < identified.nearest.size() ? Named(catalog, identified.nearest[other])
                                                              : "");
  }
  std::string text;
  if (observations.empty()) text = "No GPU is known of this time.\n";
  for (const std::string& line :
       LayOutTable({uuid, name, kernels, application, score, nearest}, terminal.width))
    text += line + "\n";
  return text + Wrap(fmt::format("\ncatalog: {}{}; below a score of {:.2f} an application is unknown\n",
                                 Counted(std::ssize(catalog.applications), "application"), named,
                                 CosineOf(kUnknownFloor + 1)),
                     terminal.width, 2);
}

std::string IdentifiedJson(const Catalog& catalog, std::span<const Observation> observations) {
  constexpr double kDigits = 10'000;
  JsonWriter out;
  out.BeginObject().Field("version", 1).Field("floor", Rounded(CosineOf(kUnknownFloor + 1), kDigits));
  out.Field("applications", static_cast<int64_t>(catalog.applications.size()));
  out.Key("gpus").BeginArray();
  for (const Observation& observation : observations) {
    const Identified identified = Identify(catalog, observation.fingerprint);
    out.BeginObject()
        .Field("uuid", observation.gpu_uuid)
        .Field("name", observation.gpu_name)
        .Field("busy", observation.is_busy)
        .Field("kernels", static_cast<int64_t>(observation.kernels))
        .Field("application",
               identified.application.transform([&](uint32_t i) { return catalog.applications[i].name; }));
    out.Key("nearest").BeginArray();
    for (const Identified::Candidate& candidate : identified.nearest)
      out.BeginObject()
          .Field("name", catalog.applications[candidate.application].name)
          .Field("score", Rounded(CosineOf(candidate.score), kDigits))
          .EndObject();
    out.EndArray().EndObject();
  }
  return out.EndArray().EndObject().Take();
}

}  // namespace gpusonde::fleet
