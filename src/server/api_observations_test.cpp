// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fleet/characteristics.h"
#include "server/api.h"
#include "server/testing/fake_data.h"

namespace gpusonde::server {
namespace {

TEST(ApiObservations, AreOfATimeRangeAndReadBack) {
  FakeData data;
  fleet::Observation& observed = data.observations.gpus.emplace_back();
  data.observations.observed_ns = 700;
  observed = {.gpu_uuid = "GPU-1", .gpu_name = "NVIDIA X", .is_busy = true, .kernels = 7, .rows = {}};
  for (uint32_t group = 0; group < fleet::OpenCharacteristics(); ++group)
    observed.rows.push_back(fleet::Measure(group, {}));
  const HttpHandler api = ApiHandler(data, {.mode = "up"});
  const auto ask = [&](const std::string& name, const std::string& value) {
    return api({.path = "/api/v1/fleet/observations", .query = {{"from_us", "1000"}, {name, value}}});
  };
  const HttpResponse response = ask("to_us", "2000");
  ASSERT_EQ(response.status, 200) << *response.body;
  const auto read = fleet::ParseObservations(*response.body);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, data.observations);
  EXPECT_EQ(data.selection.from_ns, 1'000'000);
  EXPECT_EQ(data.selection.to_ns, 2'000'000);
  EXPECT_EQ(ask("process", std::string(32, '0')).status, 400) << "only a time range";
}

}  // namespace
}  // namespace gpusonde::server
