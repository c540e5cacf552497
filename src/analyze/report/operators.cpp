// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/operators.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/report/quantities.h"
#include "base/saturated.h"

namespace gpusonde::analyze {

int64_t GpuTime(const Report& report) {
  int64_t all_ns = 0;
  for (const auto* const lines : {&report.kernels, &report.graphs})
    for (const DurationLine& line : *lines) all_ns = AddSaturated(all_ns, line.total_ns);
  for (const auto* const lines : {&report.memcpys, &report.memsets})
    for (const TransferLine& line : *lines) all_ns = AddSaturated(all_ns, line.durations.total_ns);
  return all_ns;
}

std::string KernelsText(const OperatorLine& line, const model::ShortNames& shown, size_t max) {
  std::string text;
  for (size_t i = 0; i < std::min(max, line.kernels.size()); ++i)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", shown(line.kernels[i].name),
                        Percent(line.kernels[i].total_ns, line.total_ns));
  return text;
}

}  // namespace gpusonde::analyze
