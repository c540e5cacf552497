// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde::model {

// The part of a MIG instance's device name that distinguishes it from others of its GPU: "MIG 1g.10gb
// (instance 3/0)", with the ids of its GPU instance and compute instance (sources/nvml/library.h makes these
// names). Empty for a whole GPU.
constexpr std::string_view MigPartOf(std::string_view device_name) {
  const size_t at = device_name.find(" MIG ");
  return at == std::string_view::npos ? std::string_view() : device_name.substr(at + 1);
}

// "3/0"; empty for a whole GPU.
constexpr std::string_view MigIdsOf(std::string_view device_name) {
  constexpr std::string_view kBefore = "(instance ";
  const std::string_view part = MigPartOf(device_name);
  const size_t at = part.rfind(kBefore);
  if (at == std::string_view::npos || !part.ends_with(')')) return {};
  const std::string_view rest = part.substr(at + kBefore.size());
  return rest.substr(0, rest.size() - 1);
}
static_assert(MigPartOf("NVIDIA H100 MIG 1g.10gb (instance 3/0)") == "MIG 1g.10gb (instance 3/0)");
static_assert(MigIdsOf("NVIDIA H100 MIG 1g.10gb (instance 3/0)") == "3/0");
static_assert(MigPartOf("NVIDIA H100").empty() && MigIdsOf("NVIDIA H100").empty());

}  // namespace gpusonde::model
