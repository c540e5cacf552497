// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/bpf_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/btf.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fd.h"
#include "base/log.h"
#include "sources/refusal.h"

namespace gpusonde::ebpf {
namespace {

int Print(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG || !LogEnabled(LogLevel::kDebug)) return 0;
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  LogDebug("libbpf: {}", std::string_view(line, std::strcspn(line, "\n")));
  return 0;
}

// Why the kernel's types can't be read (errno); 0 if they can. Instead of the file a container may have an
// empty one.
int ErrorOfBtf() {
  const Fd file(::open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno;
  uint16_t magic = 0;
  return ::read(file.get(), &magic, sizeof magic) == sizeof magic && magic == BTF_MAGIC ? 0 : ENOENT;
}

// Whether all threads of the process have ended, reaped or not.
bool HasEnded(int32_t pid) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return errno == ESRCH;
  pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, 0) == 1;
}

}  // namespace

Error Explain(int error_number, std::string_view what) {
  Error error = sources::KernelError(error_number, what);
  if (error.code == ErrorCode::kPermissionDenied) return error;
  const int btf_error = ErrorOfBtf();
  if (error_number == EMFILE || btf_error == EMFILE) {  // libbpf reports it as other errors, too
    error = ErrnoError(EMFILE, what);
    error.message += "; allow more (ulimit -n, LimitNOFILE of the systemd unit)";
  } else if (btf_error != 0) {
    return {ErrorCode::kUnsupported,
            fmt::format("{}: there is no BTF of this kernel (/sys/kernel/btf/vmlinux); gpusonde needs Linux "
                        "5.15 or newer built with CONFIG_DEBUG_INFO_BTF",
                        what)};
  }
  return error;
}

void SendLibbpfToLog() { libbpf_set_print(Print); }

uint32_t PidNamespace() {
  constexpr ino_t kInitial = 0xEFFFFFFC;  // PROC_PID_INIT_INO, include/linux/proc_ns.h
  struct stat status{};
  if (::stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == kInitial) return 0;
  return static_cast<uint32_t>(status.st_ino);
}

Status AddTarget(int targets_fd, int changes_fd, int32_t pid) {
  const auto key = static_cast<uint32_t>(pid);
  const uint8_t one = 1;
  const uint32_t zero = 0;
  uint32_t changes = 0;
  if (bpf_map_update_elem(targets_fd, &key, &one, BPF_ANY) != 0) {
    const int error = errno;
    if (error == E2BIG)
      return Fail(ErrorCode::kOutOfSpace, fmt::format("follow process {}: too many are followed", pid));
    return Fail(ErrnoError(error, fmt::format("follow process {}", pid)));
  }
  if (bpf_map_lookup_elem(changes_fd, &zero, &changes) != 0)
    return Fail(ErrnoError(errno, fmt::format("follow process {}", pid)));
  ++changes;
  if (bpf_map_update_elem(changes_fd, &zero, &changes, BPF_ANY) != 0)
    return Fail(ErrnoError(errno, fmt::format("follow process {}", pid)));
  // The BPF program removes a process when it exits, which was before.
  if (HasEnded(pid)) bpf_map_delete_elem(targets_fd, &key);
  return {};
}

}  // namespace gpusonde::ebpf
