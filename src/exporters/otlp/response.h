// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusonde::exporters {

// What a receiver of OpenTelemetry's protocol did not take of a request that it answered with 2xx
// (`partial_success`).
struct OtlpRejection {
  int64_t items = 0;    // data points, or profiles; never negative
  std::string message;  // any bytes; also without rejected items: advice
};

// Reads the body of such a response; a body that isn't one rejects nothing. Thread-safe.
OtlpRejection ReadOtlpResponse(std::string_view body);

}  // namespace gpusonde::exporters
