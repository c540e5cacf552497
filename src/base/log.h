// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace gpusonde {

// The program's own log: one line per message on stderr, UTC time first. Quiet by default (warnings and
// worse); GPUSONDE_LOG=debug|info|warn|error sets the level. Messages may hold names that
// strangers chose: they are escaped (base/printable.h), and what one place in the program writes is limited
// above debug level (base/log_limiter.h). Thread-safe. Messages for the person who runs a command are not log
// lines: commands print those themselves.
enum class LogLevel { kDebug, kInfo, kWarn, kError };

bool LogEnabled(LogLevel level);
// `place`: the same for all messages of one place in the program.
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
