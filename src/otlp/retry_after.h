// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpusonde::otlp {

// The pause that a header Retry-After asks for (RFC 9110, section 10.2.3: seconds, or a date), in ns and at
// most 10 minutes; 0 for a date that is over, nothing for any other text. `epoch_ns` is now. Thread-safe.
std::optional<int64_t> ReadRetryAfter(const std::string& text, int64_t epoch_ns);

}  // namespace gpusonde::otlp
