// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "doctor/advice.h"
#include "doctor/probes.h"
#include "doctor/trivial_program.h"

namespace gpusonde::doctor {

Finding ProbeBpf(const Settings&) {
  if (!LoadTrivialProgram(BPF_PROG_TYPE_PERF_EVENT, BPF_CGROUP_INET_INGRESS, 0).valid())
    return FailsWithErrno(errno, "load a program of two instructions into the kernel");
  return Works("loaded a program of two instructions into the kernel");
}

}  // namespace gpusonde::doctor
