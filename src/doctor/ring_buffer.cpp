// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "doctor/advice.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {

// Samples leave the kernel through a ring buffer, Linux 5.8 and newer.
Finding ProbeRingBuffer(const Settings&) {
  const auto page = static_cast<__u32>(::sysconf(_SC_PAGESIZE));
  const Fd ring(::bpf_map_create(BPF_MAP_TYPE_RINGBUF, "gpusonde_doctor", 0, 0, page, nullptr));
  if (!ring.valid()) return FailsWithErrno(errno, "make a ring buffer of one page");
  return Works("made a ring buffer of one page");
}

}  // namespace gpusonde::doctor
