// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sources/nvml/library.h"
#include "sources/source.h"

namespace gpusonde::nvml {

// Reads the state of every GPU through NVML on threads of its own, so that a call that takes long or never
// returns delays no other. If the driver is missing or unloaded, or a device is lost, this is reported once
// and retried. Not thread-safe.
class Monitor final : public sources::Source {
 public:
  struct Options {
    double frequency_hz = 10;  // in [1, 10]; slowly changing metrics are read once a second
    // Opens NVML, at the start and after the driver was unloaded.
    std::function<Result<Library>()> open = [] { return Library::Open(); };
    // Retry delay after a failure: the first, doubled each time up to the second.
    int64_t retry_ns = 10 * kNanosPerSecond;
    int64_t longest_retry_ns = 300 * kNanosPerSecond;
  };

  // Errors: those of Library::Open.
  static Result<Monitor> Start(Options options);

  // All devices found so far. A device keeps its index, which is Reading::device.
  std::vector<Device> devices() const;

  // Visits Reading and Notice, in order. If it isn't called for minutes, readings are dropped and counted.
  Status Drain(const Visit& visit) override;

  model::DropCounts DrainDrops() override;

  // Requests the threads to stop, without waiting.
  void RequestStop();
  // Stops reading. Waits up to two seconds for a call that is stuck in the driver, then abandons its thread.
  void Stop() override;

  Monitor(Monitor&&) noexcept;
  Monitor& operator=(Monitor&&) noexcept;
  ~Monitor() override;

 private:
  struct State;
  explicit Monitor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::nvml
