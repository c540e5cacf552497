// SPDX-License-Identifier: Apache-2.0
#include "doctor/in_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>

#include "base/fd.h"
#include "base/time.h"

namespace gpusonde::doctor {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 10;
// How long a child may take to end once it has answered, or was killed: a driver can hang in a process's exit
// as well, where no signal ends it.
constexpr int64_t kMaxEndNs = 2 * kNanosPerSecond;

[[noreturn]] void BeChild(const std::function<std::string()>& work, int answer_fd) {
  if (const Result<Fd> nowhere = Open("/dev/null", O_RDWR); nowhere.has_value())
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere->get(), standard);
  const std::string answer = work();
  (void)WriteAll(answer_fd, std::as_bytes(std::span(answer)));
  ::_exit(0);
}

// The child's status; nothing if it doesn't end before `until_ns`.
std::optional<int> AwaitEnd(pid_t pid, int64_t until_ns) {
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if ((ended < 0 && errno != EINTR) || MonotonicNow() >= until_ns) return std::nullopt;
    ::usleep(1000);
  }
}

}  // namespace

Result<std::string> InChild(const std::function<std::string()>& work, int timeout_s) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(ErrnoError(errno, "pipe"));
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(ErrnoError(errno, "fork"));
  if (pid == 0) BeChild(work, write_end.get());
  write_end.Close();

  std::string answer;
  const int64_t until_ns = MonotonicNow() + timeout_s * kNanosPerSecond;
  bool ended = false;
  while (!ended && answer.size() < kMaxBytes) {
    const int64_t left_ms = (until_ns - MonotonicNow()) / kNanosPerMilli;
    pollfd waiting{.fd = read_end.get(), .events = POLLIN, .revents = 0};
    const int ready = left_ms <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left_ms));
    if (ready == 0) break;
    if (ready < 0) continue;  // a signal: a read would wait without limit
    std::array<char, 4096> part{};
    const ssize_t count = ::read(read_end.get(), part.data(), part.size());
    if (count > 0) answer.append(part.data(), static_cast<size_t>(count));
    ended = count == 0;
  }
  const std::optional<int> status =
      ended ? AwaitEnd(pid, std::max(until_ns, MonotonicNow() + kMaxEndNs)) : std::nullopt;
  if (!status.has_value()) {
    ::kill(pid, SIGKILL);
    (void)AwaitEnd(pid, MonotonicNow() + kMaxEndNs);
    if (ended) return Fail(ErrorCode::kUnavailable, "it answered, and then did not end");
    return Fail(ErrorCode::kUnavailable, answer.size() >= kMaxBytes
                                             ? fmt::format("its answer is longer than {} bytes", kMaxBytes)
                                             : fmt::format("no response within {} s", timeout_s));
  }
  if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    return Fail(ErrorCode::kUnavailable, WIFSIGNALED(*status)
                                             ? fmt::format("it crashed (signal {})", WTERMSIG(*status))
                                             : fmt::format("it ended with status {}", WEXITSTATUS(*status)));
  return answer;
}

}  // namespace gpusonde::doctor
