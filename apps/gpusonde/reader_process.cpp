// SPDX-License-Identifier: Apache-2.0
#include "reader_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <span>
#include <system_error>

#include "base/fd.h"
#include "base/sandbox.h"
#include "command.h"
#include "messages.h"
#include "store/memory_limit.h"
#include "store/recording.h"

namespace gpusonde::app {
namespace {

constexpr size_t kMaxMessageBytes = 256;  // an address to open in a browser

// Beside the database's own memory and as much again for results: stacks of threads, and what malloc keeps.
constexpr int64_t kOtherDataBytes = int64_t{512} << 20;

volatile sig_atomic_t reader_pid = 0;
Fd to_parent;

// Ctrl-C reaches both processes by itself; what kill(1) sends here is passed on.
void PassOn(int number, siginfo_t* info, void* /*context*/) {
  if (info->si_code <= 0 && reader_pid > 0) ::kill(reader_pid, number);
}

void OnNoMemory() {
  constexpr std::string_view kText =
      "gpusonde: the answer needs more memory than allowed; allow more with --memory-limit-mb, or ask for "
      "less\n";
  static_cast<void>(WriteAll(STDERR_FILENO, std::as_bytes(std::span(kText))));
  std::_Exit(kExitFailed);
}

// A folder that goes with its owner, whatever became of the process that filled it.
class SpillFolder {
 public:
  SpillFolder() {
    std::error_code failed;
    path_ = std::filesystem::temp_directory_path(failed).string() + "/gpusonde-XXXXXX";
    if (failed || ::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  SpillFolder(SpillFolder&&) = delete;
  SpillFolder& operator=(SpillFolder&&) = delete;
  ~SpillFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

SandboxGrants GrantsOf(const ReaderProcess& reader, const std::string& spill) {
  SandboxGrants grants{.readable = reader.readable,
                       .writable = spill,
                       .serves = reader.serves,
                       .max_data_bytes = 2 * store::MemoryLimit() + kOtherDataBytes};
  for (const std::string& file : reader.files) {
    grants.readable.push_back(file);
    grants.readable.push_back(file + ".wal");
  }
  // What a C library and DuckDB ask about the machine.
  for (const char* path :
       {"/etc/localtime", "/usr/share/zoneinfo", "/proc/meminfo", "/sys/devices/system/cpu",
        "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    grants.readable.emplace_back(path);
  return grants;
}

[[noreturn]] void Work(const ReaderProcess& reader, const std::string& spill) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  static_cast<void>(store::LoadDatabase());  // its error is reported by what needs it
  if (!spill.empty()) ::setenv("TMPDIR", spill.c_str(), 1);
  std::set_new_handler(OnNoMemory);
  EnterSandbox(GrantsOf(reader, spill));
  const int status = reader.work();
  std::fflush(nullptr);
  std::_Exit(status);
}

std::string ReadMessage(const Fd& pipe) {
  std::string message(kMaxMessageBytes, '\0');
  size_t size = 0;
  while (size < message.size()) {
    const ssize_t count = ::read(pipe.get(), message.data() + size, message.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<size_t>(count);
    if (message[size - 1] == '\n') break;
  }
  message.resize(size);
  if (message.ends_with('\n')) message.pop_back();
  return message;
}

bool IsCrash(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGILL || number == SIGFPE ||
         number == SIGSYS || number == SIGTRAP;
}

}  // namespace

int RunReader(const ReaderProcess& reader) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    PrintError(reader.command, ErrnoError(errno, "make a pipe"));
    return kExitFailed;
  }
  Fd from_child(ends[0]);
  to_parent = Fd(ends[1]);
  const SpillFolder spill;
  std::fflush(nullptr);  // else both processes would write what is buffered
  const pid_t child = ::fork();
  if (child < 0) {
    PrintError(reader.command, ErrnoError(errno, "start a process"));
    return kExitFailed;
  }
  if (child == 0) {
    from_child.Close();
    Work(reader, spill.path());
  }
  reader_pid = child;
  to_parent.Close();
  struct sigaction pass_on{};
  pass_on.sa_sigaction = PassOn;
  pass_on.sa_flags = SA_SIGINFO;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaction(number, &pass_on, nullptr);
  if (const std::string message = ReadMessage(from_child); !message.empty()) reader.on_message(message);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  reader_pid = 0;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  if (IsCrash(number)) {
    PrintError(reader.command,
               {ErrorCode::kCorrupt, fmt::format("{}: damaged: the process that read it ended with: {}",
                                                 fmt::join(reader.files, ", "), ::strsignal(number))});
    return kExitFailed;
  }
  if (number == SIGKILL) {
    PrintError(reader.command, {ErrorCode::kUnavailable,
                                "the process that read the recording was killed, perhaps for "
                                "want of memory; --memory-limit-mb allows it less"});
    return kExitFailed;
  }
  ::signal(number, SIG_DFL);
  std::error_code ignored;
  std::filesystem::remove_all(spill.path(), ignored);  // no destructor runs
  ::raise(number);
  return kExitFailed;
}

int RunReaderInto(const std::string& output, ReaderProcess reader, const std::function<int(int to)>& work) {
  const auto failed = [&](const Error& error) {
    PrintError(reader.command, error);
    return kExitFailed;
  };
  const Fd memory(::memfd_create("output", MFD_CLOEXEC));
  if (!memory.valid()) return failed(ErrnoError(errno, "make a file in memory"));
  reader.work = [&] { return work(memory.get()); };
  if (const int status = RunReader(reader); status != kExitOk) return status;
  const auto content = MappedFile::Open(fmt::format("/proc/self/fd/{}", memory.get()));
  if (!content.has_value()) return failed(content.error());
  const auto bytes = content->bytes();
  const Status written =
      WriteFileAtomically(output, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return written.has_value() ? kExitOk : failed(written.error());
}

void TellParent(std::string_view message) {
  if (!to_parent.valid()) return;
  static_cast<void>(WriteAll(to_parent.get(), std::as_bytes(std::span(message))));
  static_cast<void>(WriteAll(to_parent.get(), std::as_bytes(std::span(std::string_view("\n")))));
  to_parent.Close();
}

}  // namespace gpusonde::app
