// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace gpusonde {
namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Never destroyed: a thread that was left behind, waiting for a server, may log while the program ends.
spdlog::logger& Logger() {
  static auto& logger = [] -> spdlog::logger& {
    auto& created = *new spdlog::logger("gpusonde", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created.set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    const char* wanted = std::getenv("GPUSONDE_LOG");
    created.set_level(wanted != nullptr ? spdlog::level::from_str(wanted) : spdlog::level::warn);
    return created;
  }();
  return logger;
}

}  // namespace

bool LogEnabled(LogLevel level) { return Logger().should_log(SpdlogLevel(level)); }

void LogMessage(LogLevel level, std::string_view message) {
  Logger().log(SpdlogLevel(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace gpusonde
