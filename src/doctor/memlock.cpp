// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {
namespace {

// Memory of the side-band rings per CPU (sources/perf/sideband.h); the part above kernel.perf_event_mlock_kb
// counts against this limit.
constexpr size_t kBytesPerCpu = size_t{512} << 10;

}  // namespace

Finding ProbeMemlock(const Settings&) {
  const size_t bytes = kBytesPerCpu * static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Fails(ErrnoError(errno, "reserve memory").message, "free some memory");
  const int error_number = ::mlock(memory, bytes) == 0 ? 0 : errno;
  ::munmap(memory, bytes);

  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string limited =
      limit.rlim_cur == RLIM_INFINITY ? "no limit" : fmt::format("the limit is {} KiB", limit.rlim_cur >> 10);
  if (error_number != 0)
    return Fails(fmt::format("{} KiB of memory can't be locked: {}; {}", bytes >> 10,
                             ErrnoError(error_number, "mlock").message, limited),
                 "raise the limit (`ulimit -l unlimited`, LimitMEMLOCK= in a systemd unit)");
  return Works(fmt::format("locked {} KiB of memory; {}", bytes >> 10, limited));
}

}  // namespace gpusonde::doctor
