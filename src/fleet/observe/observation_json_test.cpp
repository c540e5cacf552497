// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fleet/characteristics.h"
#include "fleet/observe/observation.h"
#include "fleet/observe/observation_builder.h"

namespace gpusonde::fleet {
namespace {

using testing::HasSubstr;

Observations TwoGpus() {
  ObservationBuilder builder;
  builder.AddKernel({.name = "gemm", .grid = {8, 8, 1}, .block = {128, 1, 1}, .duration_ns = 12'345});
  return {.observed_ns = 7'000,
          .gpus = {builder.Build("GPU-1", "NVIDIA \"X\""), ObservationBuilder().Build("GPU-2", "")}};
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(ObservationJson, ReadsWhatItWrote) {
  const auto read = ParseObservations(ToJson(TwoGpus()));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, TwoGpus());
  const auto none = ParseObservations(ToJson(Observations()));
  ASSERT_TRUE(none.has_value()) << none.error().message;
  EXPECT_EQ(*none, Observations());
}

TEST(ObservationJson, RefusesWhatIsNone) {
  const std::string good = ToJson(TwoGpus());
  for (const std::string& text : {std::string(),
                                  std::string("["),
                                  std::string("[]"),
                                  std::string("{}"),
                                  std::string(R"({"version":1})"),
                                  Replaced(good, R"("version":1)", R"("version":"1")"),
                                  Replaced(good, R"("observed_ns":7000)", R"("observed_ns":-1)"),
                                  Replaced(good, R"("observed_ns":7000)", R"("observed_ns":"7000")"),
                                  Replaced(good, R"("observed_ns":7000,)", ""),
                                  std::string(R"({"version":1,"observed_ns":0,"observations":{}})"),
                                  std::string(R"({"version":1,"observed_ns":0,"observations":[7]})"),
                                  std::string(R"({"version":1,"observed_ns":0,"observations":[],"more":1})"),
                                  Replaced(good, R"("busy":true)", R"("busy":1)"),
                                  Replaced(good, R"("busy")", R"("bosy")"),
                                  Replaced(good, R"("kernels":1)", R"("kernels":-1)"),
                                  Replaced(good, R"("kernels":1)", R"("kernels":1.5)"),
                                  Replaced(good, R"("kernels":1)", R"("kernels":9223372036854775808)"),
                                  Replaced(good, R"("gpu_uuid":"GPU-1")", R"("gpu_uuid":"")"),
                                  Replaced(good, R"("gpu_uuid":"GPU-1")", R"("gpu_uuid":1)"),
                                  Replaced(good, R"("gpu_name":"")", R"("gpu_name":null)"),
                                  good.substr(0, good.size() / 2)})
    EXPECT_EQ(ParseObservations(text).error().code, ErrorCode::kInvalidArgument) << text.substr(0, 90);
  EXPECT_EQ(ParseObservations(R"({"version":2})").error().code, ErrorCode::kTooNew);
  Observations twice = TwoGpus();
  twice.gpus[1].gpu_uuid = "GPU-1";
  EXPECT_THAT(ParseObservations(ToJson(twice)).error().message, HasSubstr("GPU-1 is there twice"));
  const Observations many{.observed_ns = 0,
                          .gpus = std::vector<Observation>(kMaxObservedGpus + 1, twice.gpus[0])};
  EXPECT_THAT(ParseObservations(ToJson(many)).error().message, HasSubstr("1025 GPUs"));
}

TEST(ObservationJson, RefusesRowsThatCantBeMeasured) {
  const auto refusal = [](auto&& spoil) {
    Observations observations = TwoGpus();
    spoil(observations.gpus[0]);
    const auto read = ParseObservations(ToJson(observations));
    return read.has_value() ? "read" : read.error().message;
  };
  const std::string no_row = "row 2 of GPU GPU-1 is not one of 63 bins that sum to 255";
  EXPECT_THAT(refusal([](Observation& gpu) { gpu.rows[2][5] += 1; }), HasSubstr(no_row));
  EXPECT_THAT(refusal([](Observation& gpu) { gpu.rows[2].back() = 254; }), HasSubstr(no_row));
  EXPECT_THAT(refusal([](Observation& gpu) { gpu.rows[2] = {}; }), HasSubstr(no_row));
  // Whose sum wraps around to 255.
  EXPECT_THAT(refusal([](Observation& gpu) {
                gpu.rows[2][5] += uint32_t{1} << 31, gpu.rows[2][6] += uint32_t{1} << 31;
              }),
              HasSubstr(no_row));
  EXPECT_THAT(refusal([](Observation& gpu) { gpu.rows.pop_back(); }), HasSubstr("same version"));
  EXPECT_THAT(refusal([](Observation& gpu) { gpu.fingerprint.fill(700); }),
              HasSubstr("the fingerprint of GPU GPU-1 is longer than 716"));
  EXPECT_THAT(refusal([](Observation& gpu) { gpu.fingerprint[3] = 725; }), HasSubstr("has number 725"));
}

TEST(ObservationJson, RefusesNumbersThatArentWhole) {
  const std::string good = ToJson(TwoGpus());
  const size_t numbers = good.find(R"("fingerprint":[)") + 15;
  const size_t first = good.find(',', numbers);
  for (const char* const number : {"1.0", "1e2", "\"1\"", "null", "true", "[1]", "18446744073709551615"})
    EXPECT_THAT(ParseObservations(good.substr(0, numbers) + number + good.substr(first)).error().message,
                HasSubstr("not an array of whole numbers"))
        << number;
  const std::string open(500'000, '['), close(500'000, ']');
  EXPECT_THAT(ParseObservations(good.substr(0, numbers) + open + close + good.substr(first)).error().message,
              HasSubstr("nests more than 512 levels"));
}

}  // namespace
}  // namespace gpusonde::fleet
