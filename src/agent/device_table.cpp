// SPDX-License-Identifier: Apache-2.0
#include "agent/device_table.h"

#include <algorithm>

#include "base/ascii.h"

namespace gpusonde::agent {

Id128 DeviceIdOf(std::string_view uuid) { return IdHasher("device").Add(uuid).Finish(); }

bool SaysSimulated(std::string_view name) {
  constexpr std::string_view kWord = "simulated";
  return !std::ranges::search(name, kWord, {}, Lower).empty();
}

std::optional<model::Device> DeviceTable::Add(const model::Device& seen, Witness witness) {
  const bool by_nvml = witness == Witness::kNvml;
  const auto [found, is_new] = devices_.try_emplace(seen.device, seen, by_nvml);
  if (is_new) return seen;
  auto& [row, known_by_nvml] = found->second;
  bool changed = false;
  const auto merge = [&](auto& known, const auto& reported, bool better) {
    if (!reported.has_value() || (known.has_value() && !better) || known == reported) return;
    known = reported;
    changed = true;
  };
  const bool better = by_nvml && !known_by_nvml;
  if (better) {
    changed = row.ordinal != seen.ordinal;
    row.ordinal = seen.ordinal;
    known_by_nvml = true;
  }
  merge(row.sm_count, seen.sm_count, false);
  merge(row.memory_bytes, seen.memory_bytes, better);
  merge(row.pci_bus, seen.pci_bus, false);
  return changed ? std::optional(row) : std::nullopt;
}

}  // namespace gpusonde::agent
