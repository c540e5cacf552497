// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/table.h"

namespace gpusonde::model {

// One row per released fleet histogram.
struct Histogram {
  int64_t window_ns = 0;
  int32_t page = 0;
  std::string application;
  std::string characteristic;
  std::vector<int64_t> bins;
  double epsilon = 0;
  double contributors = 0;
};

inline constexpr Table kHistograms(
    "histograms", kFacts, "One row per released fleet histogram",
    Field("window_ns", &Histogram::window_ns, "ns", "begin of the release window"),
    Field("page", &Histogram::page, "", "catalog page"),
    Field("application", &Histogram::application, "", "row of the page"),
    Field("characteristic", &Histogram::characteristic, "", "what was measured"),
    Field("bins", &Histogram::bins, "", "noisy counts"),
    Field("epsilon", &Histogram::epsilon, "", "privacy spent"),
    Field("contributors", &Histogram::contributors, "", "noisy number of devices"));

}  // namespace gpusonde::model
