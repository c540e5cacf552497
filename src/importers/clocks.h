// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "importers/trace.h"

namespace gpusonde::importers {

// The clock of a device's multiprocessors at a time, and why it isn't higher.
struct ClockSample {
  int64_t time_ns = 0;   // in the trace's own clock
  int32_t mhz = 0;       // 0: unknown
  uint32_t reasons = 0;  // bits of model::kThrottleReasons; 0 also where the trace has none

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(time_ns);
    archive(mhz);
    archive(reasons);
  }
};
using ClockTrack = std::vector<ClockSample>;  // by time

// The clocks of a trace's devices.
class Clocks {
 public:
  // Of a device. More are joined with their neighbours, at the lower clock and with the reasons of all.
  static constexpr size_t kMaxSamples = 65'536;

  // Of a device by the number that the samples have. In any order; out of range counts as unknown.
  void Add(int32_t device, const ClockSample& sample);
  // Says that a process numbers the device differently in its events.
  void Map(int32_t device, int64_t pid, int32_t ordinal) { numbers_[{pid, ordinal}] = device; }

  // Of a device as a process (GpuEvent::process) numbers it.
  ClockTrack TrackOf(int64_t process, int32_t ordinal) const;
  bool empty() const { return devices_.empty(); }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(devices_);
    archive(numbers_);
  }

 private:
  struct Number {
    int64_t pid = 0;
    int32_t ordinal = 0;

    auto operator<=>(const Number&) const = default;
    template <class Archive>
    void Transfer(Archive& archive) {
      archive(pid);
      archive(ordinal);
    }
  };
  struct Device {
    int32_t shift = 0;  // samples of the same time >> shift are joined
    std::map<int64_t, ClockSample> samples;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(shift);
      archive(samples);
      archive.Require(shift >= 0 && shift < 64);
    }
  };

  std::map<int32_t, Device> devices_;
  std::map<Number, int32_t> numbers_;
};

// The clocks that a trace has: Nsight Systems' GPU metrics (GPU_METRICS), and a recording's metrics. Empty
// for other formats. Errors: those of OpenTrace and of reading.
Result<Clocks> ReadClocks(const std::string& path, TraceFormat format, const OpenOptions& options);

}  // namespace gpusonde::importers
