// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/host_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "sources/proc/cgroups.h"

namespace gpusonde::proc {
namespace {

constexpr double kMaxQuota = 8192;                // of Linux (CONFIG_NR_CPUS): a quota of more is none
constexpr int64_t kTickNs = 10 * kNanosPerMilli;  // USER_HZ is 100 on every x86-64 Linux

// The number that follows `key`, which begins a line or follows a space.
std::optional<int64_t> NumberAfter(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at != 0 && text[at - 1] != '\n' && text[at - 1] != ' ') continue;
    int64_t value = 0;
    const char* begin = text.data() + at + key.size();
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    if (error == std::errc() && end != begin && value >= 0) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> ParsePressureNs(std::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  if (!text.starts_with("some ")) return std::nullopt;
  return NumberAfter(text.substr(0, end), "total=").transform([](int64_t us) { return us * kNanosPerMicro; });
}

std::optional<int64_t> ReadPressureNs(Resource resource) {
  constexpr const char* kFiles[] = {"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
  const Result<std::string> text = ReadFile(kFiles[static_cast<size_t>(resource)]);
  return text.has_value() ? ParsePressureNs(*text) : std::nullopt;
}

std::optional<int64_t> ParseStealNs(std::string_view stat) {
  if (!stat.starts_with("cpu ")) return std::nullopt;
  std::string_view line = stat.substr(4, stat.find('\n') - 4);
  int64_t value = 0;
  for (int field = 0; field < 8; ++field) {  // user nice system idle iowait irq softirq steal
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc()) return std::nullopt;
    line.remove_prefix(static_cast<size_t>(end - line.data()));
  }
  return value * kTickNs;
}

std::optional<int64_t> ReadStealNs() {
  const Result<std::string> text = ReadFile("/proc/stat");
  return text.has_value() ? ParseStealNs(*text) : std::nullopt;
}

std::vector<CgroupFolder> CpuCgroups(int32_t pid) {
  std::vector<CgroupFolder> cgroups = CgroupFolders(pid, "cpu");
  std::erase_if(cgroups, [](const CgroupFolder& each) {
    return ::access((each.path + "cpu.stat").c_str(), R_OK) != 0;
  });
  return cgroups;
}

std::optional<int64_t> ParseThrottledNs(std::string_view cpu_stat) {
  if (const std::optional<int64_t> us = NumberAfter(cpu_stat, "throttled_usec "); us.has_value())
    return *us * kNanosPerMicro;
  return NumberAfter(cpu_stat, "throttled_time ");
}

std::optional<int64_t> ReadThrottledNs(std::span<const CgroupFolder> cgroups) {
  std::optional<int64_t> sum;
  for (const CgroupFolder& each : cgroups) {
    const Result<std::string> text = ReadFile(each.path + "cpu.stat");
    if (!text.has_value()) continue;
    if (const std::optional<int64_t> ns = ParseThrottledNs(*text); ns.has_value())
      sum = sum.value_or(0) + *ns;
  }
  return sum;
}

std::optional<double> ParseCpuQuota(std::string_view quota_and_period) {
  constexpr std::string_view kBlanks = " \n";
  const size_t end = std::min(quota_and_period.find_first_of(kBlanks), quota_and_period.size());
  const auto quota_us = ParseNumber<int64_t>(quota_and_period.substr(0, end));  // not "max"
  const auto period_us = ParseNumber<int64_t>(Trimmed(quota_and_period.substr(end), kBlanks));
  if (quota_us.value_or(0) <= 0 || period_us.value_or(0) <= 0) return std::nullopt;
  const double cpus = static_cast<double>(*quota_us) / static_cast<double>(*period_us);
  return cpus <= kMaxQuota ? std::optional(cpus) : std::nullopt;
}

std::optional<double> ReadCpuQuota(std::span<const CgroupFolder> cgroups) {
  std::optional<double> lowest;
  for (const CgroupFolder& each : cgroups) {
    const std::string text = each.v1 ? ReadFile(each.path + "cpu.cfs_quota_us").value_or("") + ' ' +
                                           ReadFile(each.path + "cpu.cfs_period_us").value_or("")
                                     : ReadFile(each.path + "cpu.max").value_or("");
    if (const std::optional<double> cpus = ParseCpuQuota(text); cpus.has_value())
      lowest = std::min(lowest.value_or(*cpus), *cpus);
  }
  return lowest;
}

}  // namespace gpusonde::proc
