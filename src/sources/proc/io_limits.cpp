// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/io_limits.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "sources/proc/cgroups.h"

namespace gpusonde::proc {
namespace {

// A non-negative count; nullopt for "max" and anything else that is not a number.
std::optional<int64_t> ParseCount(std::string_view text) {
  const std::optional<int64_t> value = ParseNumber<int64_t>(text);
  return value.has_value() && *value >= 0 ? value : std::nullopt;
}

bool IsDevice(std::string_view word) { return word.find(':') != std::string_view::npos; }

using Names = std::array<std::string_view, IoAmounts::kKinds>;

IoByDevice ParsePairs(std::string_view text, const Names& names) {
  IoByDevice devices;
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    const std::string_view device = TakeWord(line);
    if (!IsDevice(device)) continue;
    IoAmounts& amounts = devices[std::string(device)];
    for (std::string_view pair = TakeWord(line); !pair.empty(); pair = TakeWord(line)) {
      const size_t equals = pair.find('=');
      const auto name = std::ranges::find(names, pair.substr(0, equals));
      if (equals == std::string_view::npos || name == names.end()) continue;
      amounts.of.at(static_cast<size_t>(name - names.begin())) =
          ParseCount(pair.substr(equals + 1)).value_or(0);
    }
  }
  return devices;
}

std::string ReadOr(const std::string& path) { return ReadFile(path).value_or(""); }

}  // namespace

IoByDevice ParseIoLimits(std::string_view io_max) {
  return ParsePairs(io_max, {"rbps", "wbps", "riops", "wiops"});
}

IoByDevice ParseIoUse(std::string_view io_stat) {
  return ParsePairs(io_stat, {"rbytes", "wbytes", "rios", "wios"});
}

void AddIoLimitsV1(std::string_view file, IoAmounts::Kind kind, IoByDevice& limits) {
  while (!file.empty()) {
    std::string_view line = TakeLine(file);
    const std::string_view device = TakeWord(line);
    const std::optional<int64_t> limit = ParseCount(TakeWord(line));
    if (IsDevice(device) && limit.has_value()) limits[std::string(device)].of.at(kind) = *limit;
  }
}

void AddIoUseV1(std::string_view file, bool operations, IoByDevice& use) {
  while (!file.empty()) {
    std::string_view line = TakeLine(file);
    const std::string_view device = TakeWord(line);
    const std::string_view kind = TakeWord(line);
    const std::optional<int64_t> amount = ParseCount(TakeWord(line));
    if (!IsDevice(device) || !amount.has_value() || (kind != "Read" && kind != "Write")) continue;
    const int offset = kind == "Read" ? 0 : 1;
    use[std::string(device)].of.at(
        static_cast<size_t>((operations ? IoAmounts::kReads : IoAmounts::kReadBytes) + offset)) = *amount;
  }
}

IoLimits IoLimits::Of(int32_t pid) {
  IoLimits limits;
  for (const CgroupFolder& folder : CgroupFolders(pid, "blkio"))
    limits.groups_.push_back({.folder = folder.path, .v1 = folder.v1, .last = std::nullopt});
  return limits;
}

IoByDevice IoLimits::LimitsOf(const Group& group) {
  if (!group.v1) return ParseIoLimits(ReadOr(group.folder + "io.max"));
  IoByDevice limits;
  constexpr std::array kFiles = {"read_bps_device", "write_bps_device", "read_iops_device",
                                 "write_iops_device"};
  for (size_t kind = 0; kind < kFiles.size(); ++kind)
    AddIoLimitsV1(ReadOr(group.folder + "blkio.throttle." + kFiles.at(kind)),
                  static_cast<IoAmounts::Kind>(kind), limits);
  return limits;
}

IoByDevice IoLimits::UseOf(const Group& group) {
  if (!group.v1) return ParseIoUse(ReadOr(group.folder + "io.stat"));
  IoByDevice use;
  AddIoUseV1(ReadOr(group.folder + "blkio.throttle.io_service_bytes_recursive"), false, use);
  AddIoUseV1(ReadOr(group.folder + "blkio.throttle.io_serviced_recursive"), true, use);
  return use;
}

std::optional<int64_t> IoLimits::TakeThrottledNs() {
  double longest_s = 0;
  for (Group& group : groups_) {
    const IoByDevice limits = LimitsOf(group);
    if (limits.empty()) {  // usage is only read once there is a limit
      group.last.reset();
      continue;
    }
    IoByDevice use = UseOf(group);
    for (const auto& [device, limit] : limits)
      for (size_t kind = 0; group.last.has_value() && kind < IoAmounts::kKinds; ++kind) {
        const int64_t used = use[device].of.at(kind) - (*group.last)[device].of.at(kind);
        if (limit.of.at(kind) > 0 && used > 0)
          longest_s = std::max(longest_s, static_cast<double>(used) / static_cast<double>(limit.of.at(kind)));
      }
    group.last = std::move(use);
  }
  if (!std::exchange(asked_, true)) return std::nullopt;
  return static_cast<int64_t>(std::min(longest_s, 3600.0) * static_cast<double>(kNanosPerSecond));
}

}  // namespace gpusonde::proc
