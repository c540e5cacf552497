// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/pid_namespace.h"

#include <sys/stat.h>

namespace gpusonde::ebpf {

uint32_t PidNamespace() {
  constexpr ino_t kInitial = 0xEFFFFFFC;  // PROC_PID_INIT_INO, include/linux/proc_ns.h
  struct stat status{};
  if (::stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == kInitial) return 0;
  return static_cast<uint32_t>(status.st_ino);
}

}  // namespace gpusonde::ebpf
