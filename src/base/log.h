// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace gpusonde {

// The program's log: one line per message on stderr, beginning with the UTC time. Only warnings and errors by
// default; GPUSONDE_LOG=debug|info|warn|error|off sets the level. Messages may contain untrusted names: they
// are escaped (base/printable.h), and above debug level each log call in the source is rate-limited
// (base/log_limiter.h). Thread-safe. A command prints its messages for the user itself, not to the log.
enum class LogLevel { kDebug, kInfo, kWarn, kError };

bool LogEnabled(LogLevel level);
// `place` identifies the log call in the source.
void LogMessage(LogLevel level, const void* place, std::string_view message);

template <class... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(LogLevel::kDebug))
    LogMessage(LogLevel::kDebug, fmt::string_view(format).data(),
               fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(LogLevel::kInfo))
    LogMessage(LogLevel::kInfo, fmt::string_view(format).data(),
               fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void LogWarn(fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(LogLevel::kWarn))
    LogMessage(LogLevel::kWarn, fmt::string_view(format).data(),
               fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(LogLevel::kError))
    LogMessage(LogLevel::kError, fmt::string_view(format).data(),
               fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gpusonde
