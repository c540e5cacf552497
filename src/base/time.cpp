// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <limits>

#include "base/text.h"

namespace gpusonde {
namespace {

int64_t Now(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * kNanosPerSecond + now.tv_nsec;
}

// Removes `digits` decimal digits and `separator` (unless it is 0) from the front of `text`.
std::optional<int> TakeNumber(std::string_view& text, size_t digits, char separator) {
  const size_t length = digits + (separator == 0 ? 0 : 1);
  if (text.size() < length || (separator != 0 && text[digits] != separator)) return std::nullopt;
  const std::optional<int> number = ParseNumber<int>(text.substr(0, digits));
  if (!number.has_value() || *number < 0) return std::nullopt;
  text.remove_prefix(length);
  return number;
}

// ".123", or nothing.
std::optional<int64_t> FractionNs(std::string_view text) {
  if (text.empty()) return 0;
  if (text.size() < 2 || text.size() > 10 || text.front() != '.') return std::nullopt;
  std::string digits(text.substr(1));
  digits.resize(9, '0');
  std::string_view rest = digits;
  return TakeNumber(rest, 9, 0);
}

}  // namespace

int64_t EpochNow() { return Now(CLOCK_REALTIME); }
int64_t MonotonicNow() { return Now(CLOCK_MONOTONIC); }

int64_t MeasureEpochOffset() {
  int64_t best_bracket = std::numeric_limits<int64_t>::max();
  int64_t offset = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const int64_t before = MonotonicNow();
    const int64_t epoch = EpochNow();
    const int64_t after = MonotonicNow();
    if (after - before >= best_bracket) continue;
    best_bracket = after - before;
    offset = epoch - (before + best_bracket / 2);
  }
  return offset;
}

std::string FormatUtc(int64_t epoch_ns) {
  std::time_t seconds = epoch_ns / kNanosPerSecond;
  int64_t rest_ns = epoch_ns % kNanosPerSecond;
  if (rest_ns < 0) {
    rest_ns += kNanosPerSecond;
    --seconds;
  }
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, rest_ns / kNanosPerMilli);
}

std::string FormatUtcSecond(int64_t epoch_ns) {
  const std::string text = FormatUtc(epoch_ns);
  return text.substr(0, 10) + ' ' + text.substr(11, 8);
}

std::string FormatUtcMinute(int64_t epoch_ns) { return FormatUtcSecond(epoch_ns).substr(0, 16); }

std::string FormatUtcClock(int64_t epoch_ns) { return FormatUtc(epoch_ns).substr(11, 8); }

std::optional<int64_t> ParseUtc(std::string_view text) {
  constexpr std::string_view kMidnight = "00:00:00";
  constexpr size_t kDate = std::string_view("2026-11-21").size();
  std::string_view time = kMidnight;
  if (text.size() > kDate) {
    if (text[kDate] != 'T' && text[kDate] != ' ') return std::nullopt;
    time = text.substr(kDate + 1);
    if (time.ends_with('Z')) time.remove_suffix(1);
    text = text.substr(0, kDate);
  }
  const auto year = TakeNumber(text, 4, '-');
  const auto month = TakeNumber(text, 2, '-');
  const auto day = TakeNumber(text, 2, 0);
  const auto hour = TakeNumber(time, 2, ':');
  const auto minute = TakeNumber(time, 2, ':');
  const auto second = TakeNumber(time, 2, 0);
  const auto fraction_ns = FractionNs(time);
  if (!year || !month || !day || !hour || !minute || !second || !fraction_ns) return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *year < 1678 || *year > 2261) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + *hour) * 60 + *minute) * 60 + *second) * kNanosPerSecond + *fraction_ns;
}

}  // namespace gpusonde
