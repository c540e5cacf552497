// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "base/log_limiter.h"
#include "base/printable.h"
#include "base/time.h"

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

// To what GPUSONDE_LOG names, else warnings: spdlog takes a name that it doesn't know for "off".
void SetLevel(spdlog::logger& logger) {
  const char* const variable = std::getenv("GPUSONDE_LOG");
  const std::string wanted = variable == nullptr || *variable == '\0' ? "warn" : variable;
  const spdlog::level::level_enum level = spdlog::level::from_str(wanted);
  const bool unknown = level == spdlog::level::off && wanted != "off";
  logger.set_level(unknown ? spdlog::level::warn : level);
  if (unknown)
    logger.warn("GPUSONDE_LOG={} is no level; they are debug, info, warn, error and off", Printable(wanted));
}

struct Limits {
  std::mutex mutex;
  LogLimiter limiter;
};

// Never destroyed: an abandoned thread that waits for a server may log while the program ends.
Limits& AllLimits() {
  static auto& limits = *new Limits;
  return limits;
}

LogLimiter::Verdict Admit(LogLevel level, const void* place) {
  if (level == LogLevel::kDebug) return {.admitted = true};
  Limits& limits = AllLimits();
  const std::lock_guard lock(limits.mutex);
  return limits.limiter.Admit(place, MonotonicNow());
}

// Never destroyed, like the limiter.
spdlog::logger& Logger() {
  static auto& logger = [] -> spdlog::logger& {
    auto& created = *new spdlog::logger("gpusonde", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created.set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    SetLevel(created);
    std::atexit([] {
      Limits& limits = AllLimits();
      const std::lock_guard lock(limits.mutex);
      if (const int64_t withheld = limits.limiter.withheld(); withheld > 0)
        Logger().warn("{} repeated messages were withheld", withheld);
    });
    return created;
  }();
  return logger;
}

}  // namespace

bool LogEnabled(LogLevel level) { return Logger().should_log(SpdlogLevel(level)); }

void LogMessage(LogLevel level, const void* place, std::string_view message) {
  const LogLimiter::Verdict verdict = Admit(level, place);
  if (!verdict.admitted) return;
  std::string line = Printable(message);
  if (verdict.withheld > 0) line += fmt::format(" ({} more like this were withheld)", verdict.withheld);
  Logger().log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace gpusonde
