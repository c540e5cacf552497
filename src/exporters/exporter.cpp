// SPDX-License-Identifier: Apache-2.0
#include "exporters/exporter.h"

#include <algorithm>
#include <array>

namespace gpusonde::exporters {

std::span<const Exporter* const> AllExporters() {
  static constexpr std::array kExporters = {
      &kFolded,
      &kOtlp,
      &kPprof,
      &kSpeedscope,
  };
  return kExporters;
}

const Exporter* FindExporter(std::string_view name) {
  const auto all = AllExporters();
  const auto found = std::ranges::find(all, name, &Exporter::name);
  return found == all.end() ? nullptr : *found;
}

}  // namespace gpusonde::exporters
