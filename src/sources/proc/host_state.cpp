// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/host_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/fd.h"
#include "base/time.h"

namespace gpusonde::proc {
namespace {

constexpr int64_t kTickNs = 10 * kNanosPerMilli;  // USER_HZ is 100 on every x86-64 Linux
constexpr int kMostLevels = 32;                   // of cgroups; deeper ones have no quota that we see

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

// Where the hierarchy that has the cpu controller is mounted: v1's, else v2's.
struct Mounts {
  std::string v1, v2;
};

Mounts FindMounts() {
  Mounts mounts;
  const Result<std::string> text = ReadFile("/proc/self/mounts");
  if (!text.has_value()) return mounts;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t folder = line.find(' ');
    const size_t type = folder == std::string_view::npos ? folder : line.find(' ', folder + 1);
    const size_t options = type == std::string_view::npos ? type : line.find(' ', type + 1);
    if (options == std::string_view::npos) continue;
    const std::string path(line.substr(folder + 1, type - folder - 1));
    const std::string_view kind = line.substr(type + 1, options - type - 1);
    const std::string words =
        fmt::format(",{},", line.substr(options + 1, line.find(' ', options + 1) - options - 1));
    if (kind == "cgroup2" && mounts.v2.empty()) mounts.v2 = path;
    if (kind == "cgroup" && words.find(",cpu,") != std::string::npos && mounts.v1.empty()) mounts.v1 = path;
  }
  return mounts;
}

// The path of the process in a hierarchy of /proc/PID/cgroup.
std::optional<std::string> PathIn(std::string_view cgroup, bool v1) {
  while (!cgroup.empty()) {
    const size_t end = std::min(cgroup.find('\n'), cgroup.size());
    const std::string_view line = cgroup.substr(0, end);
    cgroup.remove_prefix(std::min(end + 1, cgroup.size()));
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (v1 ? controllers.find(",cpu,") != std::string::npos : controllers == ",,")
      return std::string(line.substr(second + 1));
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

std::vector<std::string> CpuStatFiles(int32_t pid) {
  const Result<std::string> cgroup = ReadFile(fmt::format("/proc/{}/cgroup", pid));
  if (!cgroup.has_value()) return {};
  const Mounts mounts = FindMounts();
  const bool v1 = !mounts.v1.empty();
  const std::string& root = v1 ? mounts.v1 : mounts.v2;
  std::optional<std::string> path = PathIn(*cgroup, v1);
  if (root.empty() || !path.has_value()) return {};
  std::vector<std::string> files;
  for (int level = 0; level < kMostLevels; ++level) {
    std::string file = root + *path + (path->ends_with('/') ? "cpu.stat" : "/cpu.stat");
    if (::access(file.c_str(), R_OK) == 0) files.push_back(std::move(file));
    if (path->size() <= 1) break;
    path->resize(std::max<size_t>(path->rfind('/'), 1));
  }
  return files;
}

std::optional<int64_t> ParseThrottledNs(std::string_view cpu_stat) {
  if (const std::optional<int64_t> us = NumberAfter(cpu_stat, "throttled_usec "); us.has_value())
    return *us * kNanosPerMicro;
  return NumberAfter(cpu_stat, "throttled_time ");
}

std::optional<int64_t> ReadThrottledNs(const std::vector<std::string>& cpu_stat_files) {
  std::optional<int64_t> sum;
  for (const std::string& file : cpu_stat_files) {
    const Result<std::string> text = ReadFile(file);
    if (!text.has_value()) continue;
    if (const std::optional<int64_t> ns = ParseThrottledNs(*text); ns.has_value())
      sum = sum.value_or(0) + *ns;
  }
  return sum;
}

}  // namespace gpusonde::proc
