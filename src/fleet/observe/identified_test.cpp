// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/identified.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/display_width.h"
#include "fleet/observe/observation_builder.h"

namespace gpusonde::fleet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Fingerprint WithFeature(size_t place, int16_t value, size_t other_place = 0, int16_t other = 0) {
  Fingerprint fingerprint{};
  fingerprint[place] = value;
  fingerprint[other_place] = static_cast<int16_t>(fingerprint[other_place] + other);
  return fingerprint;
}

Catalog ThreeApplications() {
  return {.applications = {{"bert", WithFeature(1, 716)},
                           {"llama", WithFeature(2, 716)},
                           {"resnet", WithFeature(2, -716)}}};
}

Observation Observing(const Fingerprint& fingerprint) {
  Observation observation = ObservationBuilder().Build("GPU-12345678-9abc", "NVIDIA H100 80GB HBM3");
  observation.is_busy = true;
  observation.kernels = 4711;
  observation.fingerprint = fingerprint;
  return observation;
}

TEST(Identify, NamesTheNearestAboveTheFloor) {
  const Identified known = Identify(ThreeApplications(), WithFeature(2, 700, 1, 100));
  EXPECT_EQ(known.application, 1u);
  ASSERT_THAT(known.nearest, SizeIs(2));
  EXPECT_EQ(known.nearest[0].application, 1u);
  EXPECT_EQ(known.nearest[1].application, 0u);
  EXPECT_EQ(known.nearest[1].score, 100 * 716);
  const Identified unknown = Identify(ThreeApplications(), WithFeature(2, 480, 1, 500));
  EXPECT_FALSE(unknown.application.has_value());
  EXPECT_EQ(unknown.nearest[0].application, 0u);
}

TEST(Identify, AgreesWithAReport) {
  for (int16_t feature = 400; feature < 600; ++feature) {
    const Fingerprint fingerprint = WithFeature(2, feature);
    const Match match = BestMatch(Scores(ThreeApplications(), fingerprint));
    EXPECT_EQ(Identify(ThreeApplications(), fingerprint).application.has_value(), match.is_known) << feature;
  }
}

TEST(Identify, NothingIsNearestWithoutAKernel) {
  EXPECT_THAT(Identify(ThreeApplications(), Fingerprint{}).nearest, IsEmpty());
  const Catalog one{.applications = {{"bert", WithFeature(1, 716)}}};
  EXPECT_THAT(Identify(one, WithFeature(1, 716)).nearest, SizeIs(1));
}

TEST(IdentifiedText, SaysWhatEachGpuRan) {
  const Observation idle = ObservationBuilder().Build("GPU-idle", "NVIDIA X");
  Observation copies = idle;
  copies.is_busy = true;
  const std::vector<Observation> observed = {Observing(WithFeature(2, 700, 1, 100)),
                                             Observing(WithFeature(1, 500, 9, 512)), idle, copies};
  EXPECT_EQ(IdentifiedText(ThreeApplications(), observed, ", those of the test", {}),
            "GPU           NAME                   KERNELS  APPLICATION   SCORE  NEAREST OTHER\n"
            "GPU-1234567…  NVIDIA H100 80GB HBM3     4711  llama          0.97  bert 0.13\n"
            "GPU-1234567…  NVIDIA H100 80GB HBM3     4711  unknown              bert 0.69\n"
            "GPU-idle      NVIDIA X                     0  idle\n"
            "GPU-idle      NVIDIA X                     0  no kernels\n"
            "\n"
            "catalog: 3 applications, those of the test; below a score of 0.70 an application is unknown\n");
  EXPECT_THAT(IdentifiedText(ThreeApplications(), {}, "", {}), HasSubstr("No GPU is known"));
}

TEST(IdentifiedText, FitsTheTerminal) {
  Catalog catalog = ThreeApplications();
  catalog.applications[1].name = std::string(60, 'l') + "\x1b[31m";
  const std::vector<Observation> observed = {Observing(WithFeature(2, 700, 1, 100))};
  for (const size_t width : {40, 60, 80, 120}) {
    const std::string text = IdentifiedText(catalog, observed, "", {.width = width});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), width) << line;
    EXPECT_THAT(text, HasSubstr("llll"));
    EXPECT_THAT(text, HasSubstr("0.97"));
  }
}

TEST(IdentifiedJson, HasTheSame) {
  const Observation idle = ObservationBuilder().Build("GPU-idle", "NVIDIA X");
  const std::vector<Observation> observed = {Observing(WithFeature(2, 700, 1, 100)),
                                             Observing(WithFeature(1, 501, 9, 512)), idle};
  const json document = json::parse(IdentifiedJson(ThreeApplications(), observed));
  EXPECT_EQ(document["version"], 1);
  EXPECT_EQ(document["floor"], 0.7);
  EXPECT_EQ(document["applications"], 3);
  EXPECT_EQ(document["gpus"][0], json::parse(R"({
      "uuid":"GPU-12345678-9abc","name":"NVIDIA H100 80GB HBM3","busy":true,"kernels":4711,
      "application":"llama","nearest":[{"name":"llama","score":0.9776},{"name":"bert","score":0.1396}]})"));
  EXPECT_EQ(document["gpus"][1]["application"], nullptr);
  EXPECT_EQ(document["gpus"][1]["nearest"][0], json::parse(R"({"name":"bert","score":0.6997})"))
      << "rounded down: it is below the floor";
  EXPECT_EQ(document["gpus"][2]["nearest"], json::array());
}

}  // namespace
}  // namespace gpusonde::fleet
