// SPDX-License-Identifier: Apache-2.0
#include "store/live/day_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "spool/upload.h"

namespace gpusonde::store {
namespace {

constexpr std::string_view kDamaged = ".damaged";

std::string FileOf(Day day) { return spool::FormatDay(day.time_since_epoch().count()) + ".sonde"; }

// The day of a file name "2026-11-21.sonde".
std::optional<Day> DayOfName(const std::string& name) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  if (std::sscanf(name.c_str(), "%4d-%2u-%2u", &year, &month, &day) != 3) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || FileOf(Day(date)) != name) return std::nullopt;
  return Day(date);
}

}  // namespace

Day DayOf(int64_t epoch_ns) {
  return std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(epoch_ns)));
}

Result<std::vector<Day>> RecordedDays(const std::string& folder) {
  std::vector<Day> days;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (const std::optional<Day> day = DayOfName(entry.path().filename())) days.push_back(*day);
  if (failed && failed != std::errc::no_such_file_or_directory)
    return Fail(ErrnoError(failed.value(), "list " + folder));
  std::ranges::sort(days);
  return days;
}

// A clock that is wrong for some hours, such as that of a machine that has yet to ask a time server, records
// two days, and its days would make all others old. Once as many days as are kept follow the gap, the days
// before it would be too old by a right clock as well.
Day NewestBelieved(std::span<const Day> days, int max_days) {
  const int enough = std::max(max_days, 3);
  const std::chrono::days gap(std::max(max_days, 2));  // there is one day between any two
  auto newest = days.end() - 1;
  int follow = 1;
  for (auto day = newest; day != days.begin() && follow < enough; --day, ++follow)
    if (*day - *(day - 1) >= gap) newest = day - 1;
  return *newest;
}

std::string PathOfDay(const std::string& folder, Day day) {
  return fmt::format("{}/{}", folder, FileOf(day));
}

std::string LogOf(const std::string& path) { return path + ".wal"; }

std::string DamagedNameOf(const std::string& path) {
  const auto is_taken = [](const std::string& name) {
    return std::filesystem::exists(name) || std::filesystem::exists(LogOf(name));
  };
  const std::string first = fmt::format("{}{}", path, kDamaged);
  std::string name = first;
  for (int number = 2; is_taken(name); ++number) name = fmt::format("{}-{}", first, number);
  return name;
}

std::map<Day, std::vector<DamagedFile>> DamagedFilesIn(const std::string& folder) {
  std::map<Day, std::vector<DamagedFile>> by_day;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename();
    const size_t suffix = name.find(kDamaged);
    const std::optional<Day> day =
        suffix == std::string::npos ? std::nullopt : DayOfName(name.substr(0, suffix));
    std::error_code gone;
    const auto bytes = entry.file_size(gone);
    if (day.has_value() && !gone) by_day[*day].push_back({entry.path(), static_cast<int64_t>(bytes)});
  }
  return by_day;
}

}  // namespace gpusonde::store
