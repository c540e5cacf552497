// SPDX-License-Identifier: Apache-2.0
#include "server/line_times.h"

#include <algorithm>
#include <vector>

#include "base/saturated.h"

namespace gpusonde::server {
namespace {

// The lines of the file that each location stands for, innermost first.
std::vector<std::vector<int32_t>> LinesByLocation(const model::Profile& profile, std::string_view file) {
  std::vector<bool> in_file;
  in_file.reserve(profile.functions.size());
  for (const model::Profile::Function& function : profile.functions) in_file.push_back(function.file == file);
  std::vector<std::vector<int32_t>> lines(profile.locations.size());
  for (size_t i = 0; i < lines.size(); ++i)
    for (const model::Profile::Line& line : profile.locations[i].lines)
      if (line.function >= 0 && in_file[static_cast<size_t>(line.function)])
        lines[i].push_back(std::max(0, line.line));
  return lines;
}

}  // namespace

std::map<int32_t, LineTime> TimesByLine(const model::Profile& profile, std::string_view file) {
  const std::vector<std::vector<int32_t>> lines = LinesByLocation(profile, file);
  std::vector<int64_t> weights_ns(profile.stacks.size());
  for (const model::Profile::Sample& sample : profile.samples)
    if (sample.stack >= 0 && static_cast<size_t>(sample.stack) < weights_ns.size()) {
      int64_t& weight_ns = weights_ns[static_cast<size_t>(sample.stack)];
      weight_ns = AddSaturated(weight_ns, std::max<int64_t>(0, sample.weight_ns));
    }
  std::map<int32_t, LineTime> times;
  std::vector<int32_t> on_stack;
  for (size_t i = 0; i < weights_ns.size(); ++i) {
    if (weights_ns[i] == 0) continue;
    on_stack.clear();
    for (const int32_t location : profile.stacks[i])
      if (location >= 0) {
        const std::vector<int32_t>& here = lines[static_cast<size_t>(location)];
        on_stack.insert(on_stack.end(), here.begin(), here.end());
      }
    if (on_stack.empty()) continue;
    int64_t& self_ns = times[on_stack.front()].self_ns;
    self_ns = AddSaturated(self_ns, weights_ns[i]);
    std::ranges::sort(on_stack);
    on_stack.erase(std::unique(on_stack.begin(), on_stack.end()), on_stack.end());
    for (const int32_t line : on_stack)
      times[line].total_ns = AddSaturated(times[line].total_ns, weights_ns[i]);
  }
  return times;
}

int64_t TotalTime(const model::Profile& profile) {
  int64_t total_ns = 0;
  for (const model::Profile::Sample& sample : profile.samples)
    total_ns = AddSaturated(total_ns, std::max<int64_t>(0, sample.weight_ns));
  return total_ns;
}

}  // namespace gpusonde::server
