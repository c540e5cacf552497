// SPDX-License-Identifier: Apache-2.0
#include "inject/sink.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/libc.h"
#include "inject/probes.h"

namespace gpusonde::inject {
namespace {

int g_socket = -1;
uint64_t g_socket_inode = 0;
uint32_t g_socket_lost = 0;
pid_t g_recorder = 0;  // 0: not known
uint64_t g_sequences[GPUSONDE_GPU_CHANNELS];
uint64_t g_instance = 0;
uint32_t g_nonblocking = 0;
uint32_t g_host_waits = 0;  // how many HostWaits there are
uint64_t g_send_deadline_ns = 0;
uint32_t g_own_thread = 0;  // which may wait
uint64_t g_drops[GPUSONDE_GPU_DROP_REASONS];

// The system call directly, as glibc 2.33 gave fstat a new symbol.
bool IsTheSocket(int fd) {
  struct stat status;
  return syscall(SYS_fstat, fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == g_socket_inode;
}

// Doesn't close the descriptor: its number may refer to another file by now.
void CloseSocket() { __atomic_store_n(&g_socket, -1, __ATOMIC_RELAXED); }

void LoseSocket() {
  __atomic_store_n(&g_socket_lost, 1, __ATOMIC_RELAXED);
  CloseSocket();
}

bool MayWait() {
  return ThreadId() == __atomic_load_n(&g_own_thread, __ATOMIC_RELAXED) &&
         __atomic_load_n(&g_nonblocking, __ATOMIC_RELAXED) == 0 &&
         __atomic_load_n(&g_host_waits, __ATOMIC_RELAXED) == 0 &&
         NowNs() < __atomic_load_n(&g_send_deadline_ns, __ATOMIC_RELAXED);
}

// The system call directly, and that of poll below, as the functions of the C library are cancellation
// points: a cancelled thread of the program would leave with our locks.
bool SendNow(int fd, const void* batch, size_t bytes) {
  return syscall(SYS_sendto, fd, batch, bytes, MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0) >= 0;
}

void Send(const void* batch, size_t bytes, bool may_block) {
  const KeptErrno kept;
  constexpr int kSliceMs = 20;
  for (;;) {
    const int fd = __atomic_load_n(&g_socket, __ATOMIC_RELAXED);
    if (fd < 0) return;
    if (!IsTheSocket(fd)) return LoseSocket();
    if (SendNow(fd, batch, bytes)) return;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != ENOBUFS) return CloseSocket();  // the reader is gone
    if (!may_block || !MayWait()) return CountDrop(GPUSONDE_GPU_DROP_SEND);
    pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
    syscall(SYS_poll, &room, 1, kSliceMs);
  }
}

uint64_t Instance() {
  uint64_t instance = __atomic_load_n(&g_instance, __ATOMIC_RELAXED);
  if (instance != 0) [[likely]]
    return instance;
  const uint64_t now = NowNs();
  return __atomic_compare_exchange_n(&g_instance, &instance, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
             ? now
             : instance;
}

// The digits at the beginning, up to which `text` moves; false if there are none, or too many.
bool ParseNumber(const char*& text, uint64_t& value) {
  const char* const begin = text;
  for (value = 0; *text >= '0' && *text <= '9'; ++text) {
    if (value > UINT64_MAX / 10 - 1) return false;
    value = value * 10 + static_cast<uint64_t>(*text - '0');
  }
  return text != begin;
}

bool ParseAfterColon(const char*& text, uint64_t& value) {
  if (*text != ':') return false;
  ++text;
  return ParseNumber(text, value);
}

}  // namespace

void OpenSocket(const char* value) {
  uint64_t fd = 0;
  uint64_t inode = 0;
  uint64_t recorder = 0;
  if (value == nullptr || !ParseNumber(value, fd) || fd > INT32_MAX || !ParseAfterColon(value, inode)) return;
  const bool names_recorder = *value != '\0';
  if (names_recorder && (!ParseAfterColon(value, recorder) || recorder > INT32_MAX || *value != '\0')) return;
  g_recorder = static_cast<pid_t>(recorder);
  g_socket_inode = inode;
  if (!IsTheSocket(static_cast<int>(fd))) return LoseSocket();
  __atomic_store_n(&g_socket, static_cast<int>(fd), __ATOMIC_RELAXED);
}

bool SocketOpen() { return __atomic_load_n(&g_socket, __ATOMIC_RELAXED) >= 0; }
bool SocketLost() { return __atomic_load_n(&g_socket_lost, __ATOMIC_RELAXED) != 0; }
bool RecorderRuns() { return g_recorder > 0 && (kill(g_recorder, 0) == 0 || errno == EPERM); }
void ForgetSocket() { __atomic_store_n(&g_socket_lost, 0, __ATOMIC_RELAXED); }

bool HasConsumers() {
  return SocketOpen() || ProbeAttached(GPUSONDE_GPU_STATE) || ProbeAttached(GPUSONDE_GPU_RECORDS) ||
         ProbeAttached(GPUSONDE_GPU_LAUNCH);
}

void Deliver(uint32_t channel, uint32_t session, void* batch, size_t bytes, bool may_block) {
  const gpusonde_gpu_batch header{
      .magic = GPUSONDE_GPU_MAGIC,
      .version = GPUSONDE_GPU_VERSION,
      .channel = static_cast<uint16_t>(channel),
      .bytes = static_cast<uint32_t>(bytes),
      .session = session,
      .sequence = __atomic_fetch_add(&g_sequences[channel], 1, __ATOMIC_RELAXED),
      .instance = Instance(),
  };
  memcpy(batch, &header, sizeof header);
  // The probe comes first, so that a reader of both receives a call with its stack before the same call
  // without (sources/cupti relies on it).
  if (ProbeAttached(channel)) FireProbe(channel, batch, bytes);
  if (SocketOpen() && channel != GPUSONDE_GPU_SNAPSHOT) Send(batch, bytes, may_block);
}

void SetSendDeadline(uint64_t until_ns) {
  __atomic_store_n(&g_own_thread, ThreadId(), __ATOMIC_RELAXED);
  __atomic_store_n(&g_send_deadline_ns, until_ns, __ATOMIC_RELAXED);
}

void SetNonblocking(bool nonblocking) {
  __atomic_store_n(&g_nonblocking, nonblocking ? 1 : 0, __ATOMIC_RELAXED);
}

HostWaits::HostWaits() { __atomic_fetch_add(&g_host_waits, 1, __ATOMIC_RELAXED); }
HostWaits::~HostWaits() { __atomic_fetch_sub(&g_host_waits, 1, __ATOMIC_RELAXED); }

void CountDrop(uint32_t reason, uint64_t count) {
  __atomic_fetch_add(&g_drops[reason], count, __ATOMIC_RELAXED);
}

void CopyDrops(uint64_t (&counts)[GPUSONDE_GPU_DROP_REASONS]) {
  for (uint32_t i = 0; i < GPUSONDE_GPU_DROP_REASONS; ++i)
    counts[i] = __atomic_load_n(&g_drops[i], __ATOMIC_RELAXED);
}

void* Batch::Add(uint32_t session, uint16_t type, size_t bytes) {
  bytes = (bytes + 7) & ~size_t{7};
  if (used_ != 0 && (used_ + bytes > sizeof bytes_ || session != session_)) Flush();
  if (used_ == 0) {
    used_ = sizeof(gpusonde_gpu_batch);
    session_ = session;
  }
  uint8_t* record = bytes_ + used_;
  used_ += bytes;
  memset(record, 0, bytes);
  const gpusonde_gpu_record header{.type = type, .bytes = static_cast<uint16_t>(bytes)};
  memcpy(record, &header, sizeof header);
  return record;
}

void Batch::Flush() {
  if (before_ != nullptr) before_->Flush();
  if (used_ == 0) return;
  Deliver(channel_, session_, bytes_, used_, may_block_);
  used_ = 0;
}

}  // namespace gpusonde::inject
