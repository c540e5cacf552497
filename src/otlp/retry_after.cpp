// SPDX-License-Identifier: Apache-2.0
#include "otlp/retry_after.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/time.h"

namespace gpusonde::otlp {
namespace {

// A receiver that asks for more is asked again after this.
constexpr int64_t kMaxAskedSeconds = 600;

}  // namespace

std::optional<int64_t> ReadRetryAfter(const std::string& text, int64_t epoch_ns) {
  const char* const end = text.data() + text.size();
  uint64_t seconds = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (!text.empty() && stop == end && error != std::errc::invalid_argument)
    return error == std::errc()
               ? static_cast<int64_t>(std::min<uint64_t>(seconds, kMaxAskedSeconds)) * kNanosPerSecond
               : kMaxAskedSeconds * kNanosPerSecond;
  std::tm date{};
  const char* const parsed = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (parsed == nullptr || *parsed != '\0') return std::nullopt;
  const auto asked_seconds = static_cast<int64_t>(::timegm(&date)) - epoch_ns / kNanosPerSecond;
  return std::clamp<int64_t>(asked_seconds, 0, kMaxAskedSeconds) * kNanosPerSecond;
}

}  // namespace gpusonde::otlp
