// SPDX-License-Identifier: Apache-2.0
#include "importers/clocks.h"

#include <algorithm>

#include "importers/event.h"
#include "importers/nsys/gpu_metrics.h"
#include "importers/sonde/clocks.h"

namespace gpusonde::importers {
namespace {

// Joins a sample to one of about the same time.
void Join(ClockSample& into, const ClockSample& sample) {
  into.time_ns = std::min(into.time_ns, sample.time_ns);
  if (sample.mhz > 0) into.mhz = into.mhz > 0 ? std::min(into.mhz, sample.mhz) : sample.mhz;
  into.reasons |= sample.reasons;
}

}  // namespace

void Clocks::Add(int32_t device, const ClockSample& sample) {
  if (sample.time_ns < -kMaxTimeNs || sample.time_ns > kMaxTimeNs) return;
  constexpr int32_t kMaxMhz = 100'000;
  ClockSample valid = sample;
  if (valid.mhz < 0 || valid.mhz > kMaxMhz) valid.mhz = 0;
  Device& of = devices_[device];
  const auto [place, is_new] = of.samples.try_emplace(valid.time_ns >> of.shift, valid);
  if (!is_new) Join(place->second, valid);
  if (of.samples.size() <= kMaxSamples) return;
  while (of.samples.size() > kMaxSamples) {
    ++of.shift;
    std::map<int64_t, ClockSample> wider;
    for (const auto& [time, one] : of.samples) {
      const auto [at, is_first] = wider.try_emplace(one.time_ns >> of.shift, one);
      if (!is_first) Join(at->second, one);
    }
    of.samples = std::move(wider);
  }
}

ClockTrack Clocks::TrackOf(int64_t process, int32_t ordinal) const {
  const auto mapped = numbers_.find({PidOf(process), ordinal});
  const auto found = devices_.find(mapped != numbers_.end() ? mapped->second : ordinal);
  ClockTrack track;
  if (found == devices_.end()) return track;
  for (const auto& [time, sample] : found->second.samples) track.push_back(sample);
  return track;
}

Result<Clocks> ReadClocks(const std::string& path, TraceFormat format, const OpenOptions& options) {
  if (format == TraceFormat::kNsysSqlite) return nsys::ReadGpuMetrics(path, options);
  if (format == TraceFormat::kSonde) return sonde::ReadRecordedClocks(path);
  return Clocks();
}

}  // namespace gpusonde::importers
