// SPDX-License-Identifier: Apache-2.0
#include "reader_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/ignored_signal.h"
#include "base/memory_reserve.h"
#include "base/replacing_file.h"
#include "base/sandbox.h"
#include "base/signals_blocked.h"
#include "base/temporary_folder.h"
#include "command.h"
#include "messages.h"
#include "recordings.h"
#include "store/memory_limit.h"
#include "store/recordings/recording.h"

namespace gpusonde::app {
namespace {

constexpr size_t kMaxMessageBytes = size_t{16} << 10;  // a sentence that names two paths

// Memory beside the database's limit and as much again for results: thread stacks, and what malloc keeps.
constexpr int64_t kOtherDataBytes = int64_t{512} << 20;
// And beside its limit DuckDB keeps more of larger files: reading 1.26 GB took 0.2 GB.
constexpr int64_t kFileBytesPerDataByte = 4;

// How long a reader may take to end by itself: `view` finishes what it is answering.
constexpr unsigned kGraceSeconds = 5;

volatile sig_atomic_t reader_pid = 0;
volatile sig_atomic_t stop_signal = 0;  // the first that came; 0: none
Fd to_parent;

// Ctrl-C reaches both processes by itself; what kill(1) sends here is passed on. A crafted recording can keep
// the reader from ending, so it is killed after kGraceSeconds.
void OnStop(int number, siginfo_t* info, void* /*context*/) {
  if (reader_pid <= 0) return;
  if (info->si_code <= 0) ::kill(reader_pid, number);
  if (stop_signal != 0) return;
  stop_signal = number;
  ::alarm(kGraceSeconds);
}

void OnAlarm(int /*number*/) {
  if (reader_pid > 0) ::kill(reader_pid, SIGKILL);
}

void CatchSignals() {
  struct sigaction on_stop{};
  on_stop.sa_sigaction = OnStop;
  on_stop.sa_flags = SA_SIGINFO;
  for (const int number : {SIGINT, SIGTERM, SIGQUIT}) ::sigaction(number, &on_stop, nullptr);
  if (!IsIgnored(SIGHUP)) ::sigaction(SIGHUP, &on_stop, nullptr);
  struct sigaction on_alarm{};
  on_alarm.sa_handler = OnAlarm;
  ::sigaction(SIGALRM, &on_alarm, nullptr);
}

[[noreturn]] void OnNoMemory() {
  constexpr std::string_view kText =
      "gpusonde: the query needs more memory than allowed; raise --memory-limit-mb or query "
      "less\n";
  static_cast<void>(WriteAll(STDERR_FILENO, std::as_bytes(std::span(kText))));
  std::_Exit(kExitFailed);
}

// Where memory ran out in a place that can't report it, such as a destructor, and the reserve wasn't enough.
[[noreturn]] void OnTerminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    OnNoMemory();
  } catch (...) {
    std::abort();
  }
  std::abort();
}

SandboxGrants GrantsOf(const ReaderProcess& reader, const std::string& spill) {
  SandboxGrants grants{.readable = reader.readable,
                       .writable = spill,
                       .serves = reader.serves,
                       .max_data_bytes = 2 * store::MemoryLimit() + kOtherDataBytes};
  for (const std::string& file : reader.files) {
    std::error_code unknown;
    if (const auto bytes = std::filesystem::file_size(file, unknown); !unknown)
      grants.max_data_bytes += static_cast<int64_t>(bytes) / kFileBytesPerDataByte;
    // Beside a database, DuckDB and SQLite keep its log.
    for (const char* suffix : {"", ".wal", "-wal", "-shm", "-journal"})
      grants.readable.push_back(file + suffix);
  }
  // Files that the C library and DuckDB read to learn about the machine.
  for (const char* path :
       {"/etc/localtime", "/usr/share/zoneinfo", "/proc/meminfo", "/sys/devices/system/cpu",
        "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    grants.readable.emplace_back(path);
  return grants;
}

[[noreturn]] void Work(const ReaderProcess& reader, const std::string& spill) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  static_cast<void>(store::LoadDatabase());  // an error is reported where the database is first used
  if (!spill.empty()) ::setenv("TMPDIR", spill.c_str(), 1);
  if (reader.survives_no_memory) {
    KeepMemoryInReserve();
    std::set_terminate(OnTerminate);
  } else {
    std::set_new_handler(OnNoMemory);
  }
  EnterSandbox(GrantsOf(reader, spill));
  const int status = FinishOutput(reader.command, reader.work());
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

// A trace becomes a recording there, which may be large.
std::string TemporaryIn(const ReaderProcess& reader) {
  if (!reader.temporary_in.empty()) return reader.temporary_in;
  return std::ranges::all_of(reader.files, IsRecording) ? "" : FolderForLargeFiles();
}

bool IsCrash(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGILL || number == SIGFPE ||
         number == SIGSYS || number == SIGTRAP;
}

// The exit status after this signal ended the reader. A signal that was meant for the command ends this
// process too.
int EndedBySignal(int number, const ReaderProcess& reader, const std::string& spill) {
  if (stop_signal != 0) number = stop_signal;  // whatever ended it then
  if (IsCrash(number)) {
    PrintError(
        reader.command,
        {ErrorCode::kInternal,
         fmt::format("the process that read {} crashed ({}): either the file is damaged, or gpusonde has "
                     "a bug; please report it if `gpusonde record` has just made the file",
                     fmt::join(reader.files, ", "), ::strsignal(number))});
    return kExitFailed;
  }
  if (number == SIGKILL) {
    PrintError(reader.command, {ErrorCode::kUnavailable,
                                "the process that read the recording was killed, perhaps because "
                                "memory ran out; try a smaller --memory-limit-mb"});
    return kExitFailed;
  }
  ::signal(number, SIG_DFL);
  std::error_code ignored;
  std::filesystem::remove_all(spill, ignored);  // raise() below ends the process without destructors
  ::raise(number);
  return kExitFailed;
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
  // Until they are caught, as nothing would remove the folder after one.
  std::optional<SignalsBlocked> blocked(std::in_place);
  // Removed by this process, even if the child that filled it was killed.
  Result<TemporaryFolder> created = TemporaryFolder::Create(TemporaryIn(reader));
  if (!created.has_value() && !reader.temporary_in.empty()) {
    created.error().message += "; the output is written there first: choose another";
    PrintError(reader.command, created.error());
    return kExitFailed;
  }
  const TemporaryFolder spill = std::move(created).value_or(TemporaryFolder());
  std::fflush(nullptr);  // else both processes would write the buffered output
  const pid_t child = ::fork();
  if (child < 0) {
    PrintError(reader.command, ErrnoError(errno, "start a process"));
    return kExitFailed;
  }
  if (child == 0) {
    blocked.reset();
    from_child.Close();
    Work(reader, spill.path());
  }
  reader_pid = child;
  to_parent.Close();
  CatchSignals();
  blocked.reset();
  if (const std::string message = ReadMessage(from_child); !message.empty()) reader.on_message(message);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  reader_pid = 0;
  ::alarm(0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitOk) return reader.on_success(spill.path());
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return EndedBySignal(WTERMSIG(status), reader, spill.path());
}

Status CheckIsNoInput(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code failed;
    if (std::filesystem::equivalent(output, input, failed))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} is read, and would be replaced; choose another output", output));
  }
  return {};
}

int RunReaderInto(const std::string& output, ReaderProcess reader, const std::function<int(int to)>& work) {
  const auto failed = [&](const Error& error) {
    PrintError(reader.command, error);
    return kExitFailed;
  };
  if (const Status other = CheckIsNoInput(output, reader.files); !other.has_value())
    return failed(other.error());
  Result<ReplacingFile> file = ReplacingFile::Create(output);
  if (!file.has_value()) return failed(file.error());
  reader.work = [&] { return work(file->fd()); };
  if (const int status = RunReader(reader); status != kExitOk) return status;
  const Status replaced = file->Commit();
  return replaced.has_value() ? kExitOk : failed(replaced.error());
}

void ReportToParent(std::string_view message) {
  if (!to_parent.valid()) return;
  static_cast<void>(WriteAll(to_parent.get(), std::as_bytes(std::span(message))));
  static_cast<void>(WriteAll(to_parent.get(), std::as_bytes(std::span(std::string_view("\n")))));
  to_parent.Close();
}

}  // namespace gpusonde::app
