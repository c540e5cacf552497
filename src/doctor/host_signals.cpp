// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/host_signals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "doctor/advice.h"
#include "doctor/probes.h"
#include "sources/proc/host_state.h"

namespace gpusonde::doctor {

// Briefly attaches all the probes that the diagnosis of slow steps uses, with this process as the followed
// one.
Finding ProbeHostSignals(const Settings&) {
  std::vector<std::string> absent;
  const auto start = [&]() -> Status {
    ASSIGN_OR_RETURN(ebpf::HostSignals signals, ebpf::HostSignals::Create());
    TRY(signals.Follow(::getpid()));
    TRY(signals.WatchNetwork(true));
    absent = signals.absent();
    return {};
  };
  if (const Status started = start(); !started.has_value()) {
    const bool refused = started.error().code == ErrorCode::kPermissionDenied;
    return Fails(started.error().message.substr(0, started.error().message.find(';')),
                 std::string(refused ? kNeedsPrivileges : kNeedsKernel));
  }
  if (!proc::ReadPressureNs(proc::Resource::kCpu).has_value()) absent.emplace_back("pressure (PSI)");
  if (!absent.empty())
    return Fails(fmt::format("this kernel doesn't report {}", fmt::join(absent, ", ")),
                 "slow steps with such a cause stay unexplained; a kernel with these tracepoints, CONFIG_PSI "
                 "and psi=1 "
                 "reports all of them");
  return Works("attached to the scheduler, interrupts, reclaim, disks and the network");
}

}  // namespace gpusonde::doctor
