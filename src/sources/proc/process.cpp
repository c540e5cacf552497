// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/process.h"

#include <dirent.h>
#include <fmt/format.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <unordered_map>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "model/cgroup_owner.h"

namespace gpusonde::proc {
namespace {

constexpr size_t kMaxCommandBytes = 4096;
constexpr int64_t kClockTickNs = 10'000'000;  // USER_HZ is 100 on every x86-64 Linux

// The value of "Key:\t…" in /proc/PID/status.
std::string_view StatusValue(std::string_view status, std::string_view key) {
  size_t begin = status.find(key);
  if (begin == std::string_view::npos) return {};
  begin += key.size();
  return status.substr(begin, status.find('\n', begin) - begin);
}

std::vector<int32_t> NumberedEntries(const std::string& folder) {
  std::vector<int32_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  if (directory == nullptr) return numbers;
  while (const dirent* entry = ::readdir(directory.get()))
    if (const std::optional<int32_t> number = ParseNumber<int32_t>(entry->d_name)) numbers.push_back(*number);
  std::ranges::sort(numbers);
  return numbers;
}

std::string TrimmedFile(const std::string& path) {
  Result<std::string> text = ReadFile(path);
  if (!text.has_value()) return {};
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return std::move(*text);
}

// Empty where there is none, or it may not be read.
std::string ReadLink(const std::string& path) {
  char link[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), link, sizeof link);
  return length > 0 ? std::string(link, static_cast<size_t>(length)) : std::string();
}

// Time spent suspended, which CLOCK_BOOTTIME counts and CLOCK_MONOTONIC doesn't.
int64_t SuspendedNs() {
  timespec boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  const int64_t difference = int64_t{boot.tv_sec} * kNanosPerSecond + boot.tv_nsec - MonotonicNow();
  return difference > kNanosPerMilli ? difference : 0;
}

}  // namespace

Result<ProcessInfo> ReadProcessStat(int32_t pid) {
  const std::string path = fmt::format("/proc/{}/stat", pid);
  ASSIGN_OR_RETURN(const std::string stat, ReadFile(path));
  ProcessInfo info;
  info.pid = pid;
  // "pid (comm) state ppid …": comm may contain any character, so it ends at the last parenthesis.
  const size_t open = stat.find('(');
  const size_t close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open)
    return Fail(ErrorCode::kCorrupt, path + " can't be parsed");
  info.name = stat.substr(open + 1, close - open - 1);
  std::string_view rest = std::string_view(stat).substr(close + 1);
  const std::string_view state = TakeWord(rest);
  if (state.size() == 1) info.state = state[0];
  info.parent_pid = ParseNumber<int32_t>(TakeWord(rest)).value_or(0);
  for (int field = 5; field < 19; ++field) TakeWord(rest);
  info.nice = ParseNumber<int>(TakeWord(rest)).value_or(0);
  for (int field = 20; field < 22; ++field) TakeWord(rest);
  info.start_ticks = ParseNumber<int64_t>(TakeWord(rest)).value_or(0);
  for (int field = 23; field < 41; ++field) TakeWord(rest);
  if (ParseNumber<int>(TakeWord(rest)) == SCHED_IDLE) info.nice = kNiceOfIdle;
  return info;
}

Result<ProcessInfo> ReadProcess(int32_t pid) {
  ASSIGN_OR_RETURN(ProcessInfo info, ReadProcessStat(pid));
  const std::string folder = fmt::format("/proc/{}", pid);
  if (Result<std::string> command = ReadFile(folder + "/cmdline"); command.has_value()) {
    info.command = command->substr(0, kMaxCommandBytes);
    while (!info.command.empty() && info.command.back() == '\0') info.command.pop_back();
    constexpr std::string_view kSeparators("\0\n\r\t", 4);
    std::ranges::replace_if(info.command, [&](char c) { return kSeparators.contains(c); }, ' ');
  }
  info.executable = ReadLink(folder + "/exe");
  if (Result<std::string> cgroup = ReadFile(folder + "/cgroup"); cgroup.has_value())
    info.cgroup = model::MostTellingCgroup(*cgroup);
  info.namespace_pid = pid;
  if (Result<std::string> status = ReadFile(folder + "/status"); status.has_value()) {
    std::string_view users = StatusValue(*status, "\nUid:");
    info.user_id = ParseNumber<int32_t>(TakeWord(users, '\t')).value_or(0);
    const std::string_view pids = StatusValue(*status, "\nNSpid:");
    info.namespace_pid = ParseNumber<int32_t>(pids.substr(pids.rfind('\t') + 1)).value_or(pid);
  }
  return info;
}

bool MapsFile(std::span<const MappedFile> files, std::string_view beginning) {
  return std::ranges::any_of(files,
                             [&](const MappedFile& file) { return file.name().starts_with(beginning); });
}

std::vector<MappedFile> ParseExecutableMappings(std::string_view text, std::string_view root) {
  std::vector<MappedFile> mappings;
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    // "start-end perms offset dev inode      path"
    const std::string_view range = TakeWord(line);
    const std::string_view permissions = TakeWord(line);
    const std::string_view offset = TakeWord(line);
    TakeWord(line);  // device
    TakeWord(line);  // inode
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const size_t dash = range.find('-');
    if (dash == std::string_view::npos || permissions.size() < 3 || permissions[2] != 'x') continue;
    const std::optional<uint64_t> start = ParseNumber<uint64_t>(range.substr(0, dash), 16);
    const std::optional<uint64_t> end = ParseNumber<uint64_t>(range.substr(dash + 1), 16);
    const std::optional<uint64_t> file_offset = ParseNumber<uint64_t>(offset, 16);
    if (!start.has_value() || !end.has_value() || !file_offset.has_value()) continue;
    MappedFile file{.start = *start, .end = *end, .file_offset = *file_offset};
    if (root != "/" && line.starts_with('/')) {
      if (line.starts_with(root) && line.substr(root.size()).starts_with('/'))
        line.remove_prefix(root.size());
      else
        file.outside_root = true;
    }
    file.path = line;
    mappings.push_back(std::move(file));
  }
  return mappings;
}

Result<std::vector<MappedFile>> ReadExecutableMappings(int32_t pid) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(fmt::format("/proc/{}/maps", pid)));
  const std::string root = ReadLink(fmt::format("/proc/{}/root", pid));
  return ParseExecutableMappings(text, root.empty() ? "/" : root);
}

std::vector<ThreadInfo> ReadThreads(int32_t pid) {
  std::vector<ThreadInfo> threads;
  const std::string folder = fmt::format("/proc/{}/task", pid);
  for (const int32_t tid : NumberedEntries(folder))
    threads.push_back({tid, TrimmedFile(fmt::format("{}/{}/comm", folder, tid))});
  return threads;
}

// By its flags (proc_pid_stat(5)) rather than its state: it is a zombie only some time after its exit event.
bool HasThreadEnded(int32_t pid, int32_t tid) {
  constexpr uint64_t kExiting = 4;  // PF_EXITING in include/linux/sched.h
  const Result<std::string> stat = ReadFile(fmt::format("/proc/{}/task/{}/stat", pid, tid));
  if (!stat.has_value()) return true;
  std::string_view rest = std::string_view(*stat).substr(std::min(stat->rfind(')'), stat->size() - 1) + 1);
  for (int field = 3; field < 9; ++field) TakeWord(rest);
  return (ParseNumber<uint64_t>(TakeWord(rest)).value_or(kExiting) & kExiting) != 0;
}

std::optional<char> ReadThreadState(int32_t pid, int32_t tid) {
  const Result<std::string> stat = ReadFile(fmt::format("/proc/{}/task/{}/stat", pid, tid));
  if (!stat.has_value()) return std::nullopt;
  const size_t close = stat->rfind(')');  // as in ReadProcessStat
  if (close == std::string::npos || close + 2 >= stat->size()) return std::nullopt;
  return (*stat)[close + 2];
}

std::vector<int32_t> ListProcesses() { return NumberedEntries("/proc"); }

std::vector<int32_t> ListDescendants(int32_t pid) {
  std::unordered_map<int32_t, std::vector<int32_t>> children;
  for (const int32_t candidate : ListProcesses())
    if (const Result<ProcessInfo> info = ReadProcess(candidate); info.has_value())
      children[info->parent_pid].push_back(candidate);
  std::vector<int32_t> found = children[pid];
  for (size_t i = 0; i < found.size(); ++i) {
    const std::vector<int32_t>& more = children[found[i]];
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

std::vector<int32_t> ListChildren(int32_t pid) {
  std::vector<int32_t> found;
  const std::string folder = fmt::format("/proc/{}/task", pid);
  for (const int32_t tid : NumberedEntries(folder)) {
    const Result<std::string> text = ReadFile(fmt::format("{}/{}/children", folder, tid));
    std::string_view rest = text.has_value() ? std::string_view(*text) : std::string_view();
    while (!rest.empty())
      if (const std::optional<int32_t> child = ParseNumber<int32_t>(TakeWord(rest))) found.push_back(*child);
  }
  return found;
}

Id128 MakeProcessId(std::string_view boot_id, int32_t pid, int64_t start_ticks) {
  return IdHasher("process")
      .Add(boot_id)
      .Add(static_cast<uint64_t>(pid))
      .Add(static_cast<uint64_t>(start_ticks))
      .Finish();
}

bool StillRuns(const Id128& id, int32_t pid) {
  const Result<ProcessInfo> now = ReadProcessStat(pid);
  return now.has_value() && MakeProcessId(ReadHost().boot_id, pid, now->start_ticks) == id;
}

bool HasProcess(int32_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

HostInfo ReadHost() {
  HostInfo host;
  utsname names{};
  if (::uname(&names) == 0) {
    host.name = names.nodename;
    host.kernel_release = names.release;
  }
  host.boot_id = TrimmedFile("/proc/sys/kernel/random/boot_id");
  host.cpus = static_cast<int32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  return host;
}

int64_t TicksFromMonotonic(int64_t monotonic_ns) { return (monotonic_ns + SuspendedNs()) / kClockTickNs; }

int64_t MonotonicFromTicks(int64_t ticks) { return ticks * kClockTickNs - SuspendedNs(); }

}  // namespace gpusonde::proc
