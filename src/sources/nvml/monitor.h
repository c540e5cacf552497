// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sources/nvml/library.h"
#include "sources/nvml/news.h"

namespace gpusonde::nvml {

// Reads the state of every GPU through NVML on threads of its own: a call that takes long, or never returns,
// delays nobody. A driver that isn't there yet, goes away or comes back, and a device that is lost, are told
// of once and tried again. Thread-safe.
class Monitor {
 public:
  struct Options {
    double frequency_hz = 10;  // in [1, 10]; what changes slowly is read once a second
    // How NVML is opened, at first and after the driver went away.
    std::function<Result<Library>()> open = [] { return Library::Open(); };
    // When to try again what failed, at first; twice as long each time, up to the second.
    int64_t retry_ns = 10 * kNanosPerSecond;
    int64_t longest_retry_ns = 300 * kNanosPerSecond;
  };

  // Errors: those of Library::Open.
  static Result<Monitor> Start(Options options);

  // Every device there was so far; a device keeps its place, and Reading::device is that.
  std::vector<Device> devices() const;

  // What was learnt since the last call, in the order in which it was. What nobody takes for minutes is
  // dropped and counted.
  News Take();

  // Asks for the end without waiting for it.
  void RequestStop();
  // Stops reading. A call that is stuck in the driver is waited for up to two seconds, then left behind.
  void Stop();

  Monitor(Monitor&&) noexcept;
  Monitor& operator=(Monitor&&) noexcept;
  ~Monitor();

 private:
  struct State;
  explicit Monitor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::nvml
