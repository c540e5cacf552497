// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "exporters/exporter.h"

// speedscope's own file format: https://www.speedscope.app/file-format-schema.json. One "sampled" profile of
// everything, then one per thread. A model::Profile is summed by stack and has no order in time: stacks are
// sorted by their frames, so speedscope's "time order" view shows the call tree.
namespace gpusonde::exporters {
namespace {

using Json = nlohmann::json;

// Frames, root first, as indices into the shared list of frames.
using Frames = std::vector<int32_t>;

// The frames of a profile as speedscope shares them: one for each distinct function, or place without one.
class FrameTable {
 public:
  explicit FrameTable(const model::Profile& profile) : profile_(profile) {}

  Frames StackFrames(const std::vector<int32_t>& stack) {
    Frames frames;
    for (auto location = stack.rbegin(); location != stack.rend(); ++location) {
      const size_t lines =
          *location < 0 ? 0 : profile_.locations[static_cast<size_t>(*location)].lines.size();
      for (size_t i = std::max<size_t>(lines, 1); i > 0; --i) frames.push_back(FrameOf(*location, i - 1));
    }
    return frames;
  }

  Json TakeFrames() { return std::move(frames_); }

 private:
  int32_t FrameOf(int32_t location, size_t line) {
    const std::string name = model::FrameName(profile_, location, line);
    const auto [file, first_line] = PlaceOf(location, line);
    const auto [entry, added] =
        indices_.try_emplace({name, file, first_line}, static_cast<int32_t>(frames_.size()));
    if (added) {
      Json frame = {{"name", name}};
      if (!file.empty()) frame["file"] = file;
      if (first_line > 0) frame["line"] = first_line;
      frames_.push_back(std::move(frame));
    }
    return entry->second;
  }

  // The function's source file and first line; without those, what it is in.
  std::pair<std::string, int32_t> PlaceOf(int32_t index, size_t line) const {
    if (index < 0) return {};
    const model::Profile::Location& location = profile_.locations[static_cast<size_t>(index)];
    if (line < location.lines.size() && location.lines[line].function >= 0) {
      const auto& function = profile_.functions[static_cast<size_t>(location.lines[line].function)];
      if (!function.file.empty()) return {function.file, function.line};
    }
    if (location.kind == model::FrameKind::kKernel) return {"[kernel]", 0};
    if (location.binary < 0) return {};
    return {profile_.binaries[static_cast<size_t>(location.binary)].path, 0};
  }

  const model::Profile& profile_;
  std::map<std::tuple<std::string, std::string, int32_t>, int32_t> indices_;
  Json frames_ = Json::array();
};

using WeightByStack = std::map<Frames, int64_t>;

Json SampledProfile(const std::string& name, const WeightByStack& weights) {
  Json samples = Json::array();
  Json weights_ns = Json::array();
  int64_t total_ns = 0;
  for (const auto& [frames, weight_ns] : weights) {
    samples.push_back(frames);
    weights_ns.push_back(weight_ns);
    total_ns += weight_ns;
  }
  return {{"type", "sampled"},
          {"name", name},
          {"unit", "nanoseconds"},
          {"startValue", 0},
          {"endValue", total_ns},
          {"samples", std::move(samples)},
          {"weights", std::move(weights_ns)}};
}

std::string ThreadTitle(const model::Profile::Thread& thread) {
  return fmt::format("{} (pid {}) / {} (tid {})", thread.process_name, thread.pid, thread.name, thread.tid);
}

Result<std::string> RenderSpeedscope(const model::Profile& profile, const Options& options) {
  FrameTable table(profile);
  std::vector<Frames> stacks;
  for (const std::vector<int32_t>& stack : profile.stacks) stacks.push_back(table.StackFrames(stack));
  WeightByStack everything;
  std::map<int32_t, WeightByStack> by_thread;
  for (const model::Profile::Sample& sample : profile.samples) {
    const Frames& frames = stacks[static_cast<size_t>(sample.stack)];
    everything[frames] += sample.weight_ns;
    by_thread[sample.thread][frames] += sample.weight_ns;
  }
  Json profiles = Json::array({SampledProfile(options.title, everything)});
  for (const auto& [thread, weights] : by_thread)
    profiles.push_back(SampledProfile(ThreadTitle(profile.threads[static_cast<size_t>(thread)]), weights));
  const Json file = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                     {"exporter", "gpusonde"},
                     {"name", options.title},
                     {"activeProfileIndex", 0},
                     {"shared", {{"frames", table.TakeFrames()}}},
                     {"profiles", std::move(profiles)}};
  // Names may be any bytes: invalid UTF-8 becomes U+FFFD.
  return file.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

const Exporter kSpeedscope = {.name = "speedscope",
                              .meaning = "JSON for speedscope, one profile per thread",
                              .extension = ".speedscope.json",
                              .line_based = false,
                              .render = RenderSpeedscope};

}  // namespace gpusonde::exporters
