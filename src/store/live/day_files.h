// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

// The files of a live store's folder: YYYY-MM-DD.sonde, each perhaps with DuckDB's log.
namespace gpusonde::store {

// A day of UTC.
using Day = std::chrono::sys_days;

// The day of a time, ns since the epoch.
Day DayOf(int64_t epoch_ns);

// The days of which a live store's folder has a file; rising. None if there is no such folder. Errors: kIo,
// kPermissionDenied.
Result<std::vector<Day>> RecordedDays(const std::string& folder);

// The newest of recorded days (rising, not empty) that makes others old: a clock may have been wrong. After a
// gap of `max_days` or more it is the one before the gap until as many days as are kept, and at least three,
// follow the gap.
Day NewestBelieved(std::span<const Day> days, int max_days);

// "FOLDER/2026-11-21.sonde".
std::string PathOfDay(const std::string& folder, Day day);

// DuckDB's log of a file.
std::string LogOf(const std::string& path);

// Where a damaged file, and its log, can be set aside: "PATH.damaged", or a longer name if earlier ones are
// there.
std::string DamagedNameOf(const std::string& path);

// A file that was set aside under such a name, or such a log.
struct DamagedFile {
  std::string path;
  int64_t bytes = 0;
};
// By day; without those that can't be listed.
std::map<Day, std::vector<DamagedFile>> DamagedFilesIn(const std::string& folder);

}  // namespace gpusonde::store
