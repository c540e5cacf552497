// SPDX-License-Identifier: Apache-2.0
// What a receiver of OTLP answers to a push: its body, and the header Retry-After.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/time.h"
#include "exporters/otlp/response.h"
#include "otlp/retry_after.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (gpusonde::exporters::ReadOtlpResponse(text).items < 0) std::abort();
  using gpusonde::kNanosPerDay;
  for (const int64_t now_ns : {int64_t{0}, 20'000 * kNanosPerDay})
    if (const auto pause_ns = gpusonde::otlp::ReadRetryAfter(text, now_ns);
        pause_ns.has_value() && (*pause_ns < 0 || *pause_ns > kNanosPerDay))
      std::abort();
  return 0;
}
