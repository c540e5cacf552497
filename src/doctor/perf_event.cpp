// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "doctor/advice.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {

// Opens the clock that sampling uses, on the current CPU, for all tasks.
Finding ProbePerfEvent(const Settings&) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = 1'000'000'000;  // ns; doesn't expire during the probe
  const int cpu = std::max(::sched_getcpu(), 0);
  const Fd clock(
      static_cast<int>(::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!clock.valid())
    return FailsWithErrno(
        errno, fmt::format("open a sampling clock on CPU {} (kernel.perf_event_paranoid is {})", cpu,
                           KernelSetting("kernel/perf_event_paranoid")));
  return Works(fmt::format("opened a sampling clock on CPU {}", cpu));
}

}  // namespace gpusonde::doctor
