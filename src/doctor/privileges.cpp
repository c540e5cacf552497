// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <iterator>

#include "doctor/advice.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {
namespace {

struct Privilege {
  int number;
  std::string_view name;
};

// The capabilities that `record` and `up` use.
constexpr std::array kPrivileges = {
    Privilege{CAP_BPF, "CAP_BPF"},
    Privilege{CAP_PERFMON, "CAP_PERFMON"},
    Privilege{CAP_SYSLOG, "CAP_SYSLOG"},
    Privilege{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
    Privilege{CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
};

// Bit n is capability n; 0 if the kernel doesn't report them.
uint64_t EffectiveCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, data) != 0) return 0;
  return data[0].effective | uint64_t{data[1].effective} << 32;
}

}  // namespace

Finding ProbePrivileges(const Settings&) {
  const uint64_t held = EffectiveCapabilities();
  const auto has = [held](int capability) { return (held >> capability & 1) != 0; };
  std::string names;
  for (const Privilege& privilege : kPrivileges) {
    if (!has(privilege.number)) continue;
    if (!names.empty()) names += ", ";
    names += privilege.name;
  }
  const std::string why = fmt::format(
      "user {}, {} (kernel.unprivileged_bpf_disabled is {}, kernel.perf_event_paranoid is {})", ::geteuid(),
      names.empty() ? "no useful capability" : names, KernelSetting("kernel/unprivileged_bpf_disabled"),
      KernelSetting("kernel/perf_event_paranoid"));
  if (!has(CAP_SYS_ADMIN) && !(has(CAP_BPF) && has(CAP_PERFMON)))
    return Fails(why, std::string(kNeedsPrivileges));
  if (!has(CAP_SYS_ADMIN) && !has(CAP_SYS_PTRACE) && ::geteuid() != 0)
    return Fails(why, "give the program CAP_SYS_PTRACE too, to read the binaries of other users' processes");
  return Works(why);
}

}  // namespace gpusonde::doctor
