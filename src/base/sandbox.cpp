// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>

#include "base/fd.h"
#include "base/log.h"

namespace gpusonde {
namespace {

// A sanitizer's shadow of the address space counts as data: terabytes of it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsData = false;
#else
constexpr bool kLimitsData = true;
#endif

// Landlock, from the kernel's include/uapi/linux/landlock.h: Debian 12's copy has version 2 only.
constexpr uint32_t kAskVersion = 1;
constexpr int kRulePathBeneath = 1;
constexpr uint64_t kWriteFile = 1U << 1;
constexpr uint64_t kReadFile = 1U << 2;
constexpr uint64_t kReadFolder = 1U << 3;
constexpr uint64_t kRemoveFolder = 1U << 4;
constexpr uint64_t kRemoveFile = 1U << 5;
constexpr uint64_t kMakeFolder = 1U << 7;
constexpr uint64_t kMakeFile = 1U << 8;
constexpr uint64_t kTruncate = 1U << 14;
constexpr uint64_t kBindTcp = 1U << 0;
constexpr uint64_t kConnectTcp = 1U << 1;
constexpr uint64_t kScopes = 0b11;  // abstract sockets and signals

struct Ruleset {
  uint64_t file_rights;
  uint64_t network_rights;
  uint64_t scopes;
};

struct [[gnu::packed]] PathBeneath {
  uint64_t rights;
  int32_t folder;
};

// All file access rights of an ABI version.
uint64_t FileRights(int version) {
  constexpr int kRights[] = {0, 13, 14, 15, 15, 16};  // by version; later ones have as many as version 5
  return (uint64_t{1} << kRights[version > 5 ? 5 : version]) - 1;
}

void Grant(int ruleset, const std::string& path, uint64_t rights) {
  const Fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!place.valid() || ::fstat(place.get(), &status) != 0) return;
  if (!S_ISDIR(status.st_mode)) rights &= kReadFile | kWriteFile | kTruncate;
  const PathBeneath rule{.rights = rights, .folder = place.get()};
  if (::syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &rule, 0) != 0)
    LogDebug("sandbox: {}: {}", path, ErrnoError(errno, "grant").message);
}

void RestrictFiles(const SandboxGrants& grants) {
  const int version = LandlockVersion();
  if (version == 0) return;
  Ruleset ruleset{.file_rights = FileRights(version), .network_rights = 0, .scopes = 0};
  if (version >= 4) ruleset.network_rights = kConnectTcp | (grants.serves ? 0 : kBindTcp);
  if (version >= 6) ruleset.scopes = kScopes;
  const Fd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &ruleset, sizeof ruleset, 0)));
  if (!rules.valid()) return;
  for (const std::string& path : grants.readable) Grant(rules.get(), path, kReadFile | kReadFolder);
  if (!grants.writable.empty())
    Grant(rules.get(), grants.writable,
          ruleset.file_rights & (kReadFile | kReadFolder | kWriteFile | kTruncate | kMakeFile | kMakeFolder |
                                 kRemoveFile | kRemoveFolder));
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0)
    LogDebug("sandbox: {}", ErrnoError(errno, "landlock_restrict_self").message);
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "name this architecture's AUDIT_ARCH"
#endif

// System calls that affect only this process, its descriptors and the files that Landlock permits.
constexpr int kHarmless[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_lseek,
    SYS_close,
    SYS_dup,
    SYS_dup3,
    SYS_fcntl,
    SYS_flock,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fadvise64,
    SYS_openat,
    SYS_openat2,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_renameat2,
    SYS_statfs,
    SYS_fstatfs,
    SYS_getcwd,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_membarrier,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_getcpu,
    SYS_prctl,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_times,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrandom,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrusage,
    SYS_getrlimit,
    SYS_getpriority,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_ppoll,
    SYS_pselect6,
    SYS_eventfd2,
    SYS_pipe2,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
#if defined(__x86_64__)
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_unlink,
    SYS_mkdir,
    SYS_rmdir,
    SYS_rename,
    SYS_dup2,
    SYS_pipe,
    SYS_poll,
    SYS_select,
    SYS_epoll_create,
    SYS_epoll_wait,
    SYS_time,
    SYS_set_tid_address,
    SYS_arch_prctl,
#endif
};

constexpr int kServing[] = {SYS_bind,        SYS_listen,      SYS_accept,     SYS_accept4,
                            SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
                            SYS_shutdown,    SYS_recvfrom,    SYS_recvmsg};

constexpr int kReceiving[] = {SYS_recvmsg};

// A classic BPF program over seccomp_data that allows the calls added to it and answers ENOSYS to all others.
class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    Load(offsetof(seccomp_data, nr));
  }

  void Allow(std::span<const int> calls) {
    for (const int call : calls) {
      program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
      program_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
  }

  // Allows a call when the low half of one argument, masked, is `value`.
  void AllowIf(int call, unsigned argument, uint32_t mask, uint32_t value) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 5));
    Load(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));  // both architectures are little-endian
    program_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    Load(offsetof(seccomp_data, nr));
  }

  void Install() {
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    const sock_fprog program{.len = static_cast<uint16_t>(program_.size()), .filter = program_.data()};
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
      LogDebug("sandbox: {}", ErrnoError(errno, "seccomp").message);
  }

 private:
  void Load(size_t offset) {
    program_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  }

  std::vector<sock_filter> program_;
};

void RestrictCalls(const SandboxGrants& grants) {
  constexpr uint32_t kAll = UINT32_MAX;
  Filter filter;
  filter.Allow(kHarmless);
  filter.AllowIf(SYS_clone, 0, CLONE_THREAD,
                 CLONE_THREAD);  // threads, not processes; clone3 falls back to it
  filter.AllowIf(SYS_tgkill, 0, kAll, static_cast<uint32_t>(::getpid()));  // abort()
  filter.AllowIf(SYS_prlimit64, 0, kAll, 0);                               // its own
  for (const unsigned request : {TCGETS, TIOCGWINSZ, FIONBIO, FIONREAD})
    filter.AllowIf(SYS_ioctl, 1, kAll, request);
  if (grants.receives_files) filter.Allow(kReceiving);
  if (grants.serves) {
    constexpr uint32_t kTypeMask = 0xf;  // beside SOCK_CLOEXEC and SOCK_NONBLOCK
    filter.Allow(kServing);
    // No datagram sockets: they can send without a connection.
    filter.AllowIf(SYS_socket, 1, kTypeMask, SOCK_STREAM);
    // Sending on accepted connections; with MSG_FASTOPEN it would connect.
    filter.AllowIf(SYS_sendto, 3, MSG_FASTOPEN, 0);
    filter.AllowIf(SYS_sendmsg, 2, MSG_FASTOPEN, 0);
  }
  filter.Install();
}

// A lower limit, as `ulimit` sets it, stays.
void LimitResource(__rlimit_resource resource, uint64_t most) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) == 0) most = std::min<uint64_t>(most, limit.rlim_max);
  limit = {.rlim_cur = most, .rlim_max = most};
  ::setrlimit(resource, &limit);
}

}  // namespace

void EnterSandbox(const SandboxGrants& grants) {
  LimitResource(RLIMIT_CORE, 0);
  ::prctl(PR_SET_DUMPABLE, 0);  // a program in core_pattern gets cores regardless of RLIMIT_CORE
  if (kLimitsData && grants.max_data_bytes > 0)
    LimitResource(RLIMIT_DATA, static_cast<uint64_t>(grants.max_data_bytes));
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  RestrictFiles(grants);
  RestrictCalls(grants);
}

int LandlockVersion() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

bool HasSeccomp() {
  const uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

}  // namespace gpusonde
