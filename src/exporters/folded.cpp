// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/printable.h"
#include "base/time.h"
#include "exporters/exporter.h"

// Folded stacks, one line each, root first: "train;main;load_batch;inflate 42". The text that Brendan Gregg's
// flamegraph.pl reads (https://github.com/brendangregg/FlameGraph), and with it most flame graph viewers. As
// in his stackcollapse-perf.pl the first frame is the process.
namespace gpusonde::exporters {
namespace {

// A semicolon ends a frame, so none may stand inside a name.
void AppendName(std::string& line, std::string_view name) {
  std::string safe = Printable(name);
  std::ranges::replace(safe, ';', ':');
  line += safe;
}

void AppendFrame(std::string& line, std::string_view name) {
  line += ';';
  AppendName(line, name);
}

std::string StackLine(const model::Profile& profile, const model::Profile::Sample& sample, bool per_thread) {
  const model::Profile::Thread& thread = profile.threads[static_cast<size_t>(sample.thread)];
  std::string line;
  if (per_thread) {
    AppendName(line, fmt::format("{} (pid {})", thread.process_name, thread.pid));
    AppendFrame(line, fmt::format("{} (tid {})", thread.name, thread.tid));
  } else {
    AppendName(line, thread.process_name);
  }
  const std::vector<int32_t>& stack = profile.stacks[static_cast<size_t>(sample.stack)];
  for (auto location = stack.rbegin(); location != stack.rend(); ++location) {
    const size_t lines = *location < 0 ? 0 : profile.locations[static_cast<size_t>(*location)].lines.size();
    if (lines == 0) AppendFrame(line, model::FrameName(profile, *location));
    for (size_t i = lines; i > 0; --i) AppendFrame(line, model::FrameName(profile, *location, i - 1));
  }
  return line;
}

Result<std::string> RenderFolded(const model::Profile& profile, const Options& options) {
  const bool samples = options.value == Value::kSamples;
  std::map<std::string, int64_t> totals;  // by line: sorted, so that the same profile gives the same text
  for (const model::Profile::Sample& sample : profile.samples)
    totals[StackLine(profile, sample, options.per_thread)] += samples ? sample.count : sample.weight_ns;
  std::string text;
  for (const auto& [line, total] : totals) {
    const int64_t value = samples ? total : (total + kNanosPerMicro / 2) / kNanosPerMicro;
    fmt::format_to(std::back_inserter(text), "{} {}\n", line, value);
  }
  return text;
}

}  // namespace

const Exporter kFolded = {.name = "folded",
                          .meaning = "folded stacks, for flamegraph.pl and scripts",
                          .extension = ".folded",
                          .line_based = true,
                          .render = RenderFolded};

}  // namespace gpusonde::exporters
