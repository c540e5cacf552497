// SPDX-License-Identifier: Apache-2.0
#include "agent/jit_code.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "base/log.h"
#include "base/regular_file.h"

namespace gpusonde::agent {
namespace {

// Checking whether a file has grown costs 3 µs. Code that is sampled before its entry was read has no name
// for at most kMissIntervalNs, code in place of other code kIntervalNs that one's.
constexpr int64_t kIntervalNs = 200 * kNanosPerMilli, kMissIntervalNs = 20 * kNanosPerMilli;

size_t Left(size_t limit, size_t used) { return limit - std::min(limit, used); }

// Anyone can write to /tmp: a map of another user must not name the code of this process.
bool MayBelongTo(const proc::ProcessInfo& process, uid_t owner) {
  if (owner == static_cast<uid_t>(process.user_id)) return true;
  // The process may have changed its user. Root doesn't count: the files in /proc of any undumpable process
  // belong to root.
  struct stat now{};
  return ::stat(fmt::format("/proc/{}", process.pid).c_str(), &now) == 0 && now.st_uid != 0 &&
         owner == now.st_uid;
}

}  // namespace

size_t JitBudget::RoomFor(int32_t user_id, size_t held) const {
  const auto of_user = bytes_by_user_.find(user_id);
  const size_t users = of_user == bytes_by_user_.end() ? 0 : of_user->second;
  return std::min(limits_.process_bytes,
                  held + std::min(Left(limits_.user_bytes, users), Left(limits_.bytes, bytes_)));
}

void JitBudget::ChangeBytes(int32_t user_id, size_t from, size_t to) {
  if (from == to) return;
  bytes_ += to - from;
  size_t& of_user = bytes_by_user_[user_id];
  of_user += to - from;
  if (of_user == 0) bytes_by_user_.erase(user_id);
}

// A process maps its jitdump as executable so that profilers get an event for it. OpenRegular doesn't block
// on a FIFO; whether the file is a regular one is checked when it is read.
void JitCode::OpenDump(int32_t pid, const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (dump_file_.valid() || !name.starts_with("jit-") || !name.ends_with(".dump")) return;
  if (Result<Fd> file = OpenRegular(fmt::format("/proc/{}/root{}", pid, path)); file.has_value())
    dump_file_ = *std::move(file);
}

bool JitCode::Refresh(const proc::ProcessInfo& process, model::DropCounts& drops, bool missed) {
  const int64_t now = MonotonicNow();
  const int64_t interval_ns = missed ? kMissIntervalNs : kIntervalNs;
  if (now - read_ns_ < interval_ns || !budget_.time().HasTime(user_id_, now)) return false;
  read_ns_ = now;
  const uint64_t version = version_;
  RefreshDump();
  RefreshMap(process);
  budget_.time().Spend(user_id_, MonotonicNow() - now);
  const bool changed = version_ != version;
  if (omitted_ || (!dump_.full() && !map_.full())) return changed;
  omitted_ = true;
  drops.Add(model::DropReason::kJitCodeOmitted);
  const JitBudget::Limits& limits = budget_.limits();
  LogWarn(
      "{} ({}): its {} is too large to be read to its end; the limits for code compiled at run time are "
      "{} MB per process, {} MB per user and {} MB in total",
      process.name, process.pid, map_.full() ? "perf map" : "jitdump", limits.process_bytes >> 20,
      limits.user_bytes >> 20, limits.bytes >> 20);
  return changed;
}

void JitCode::RefreshDump() {
  if (!dump_file_.valid()) return;
  const size_t before = bytes();
  const size_t room = Left(budget_.RoomFor(user_id_, before), map_.bytes());
  if (dump_.Follow(dump_file_, room)) ++version_;
  budget_.ChangeBytes(user_id_, before, bytes());
}

void JitCode::RefreshMap(const proc::ProcessInfo& process) {
  // The process names its map by its own pid in its own /tmp. After its end only a map in our /tmp is left.
  for (const std::string& path :
       {fmt::format("/proc/{}/root/tmp/perf-{}.map", process.pid, process.namespace_pid),
        fmt::format("/tmp/perf-{}.map", process.pid)}) {
    const Result<Fd> file = OpenRegular(path);
    struct stat status{};
    if (!file.has_value() || ::fstat(file->get(), &status) != 0 || !MayBelongTo(process, status.st_uid))
      continue;
    const size_t before = bytes();
    const size_t room = Left(budget_.RoomFor(user_id_, before), dump_.bytes());
    if (map_.Follow(*file, room)) ++version_;
    budget_.ChangeBytes(user_id_, before, bytes());
    return;
  }
}

std::optional<JitCode::Symbol> JitCode::Find(uint64_t address) const {
  if (const auto dumped = dump_.Find(address); dumped.has_value())
    return Symbol{dumped->address, std::string(dumped->name), std::string(dumped->file), dumped->line};
  if (const auto mapped = map_.Find(address); mapped.has_value())
    return Symbol{.address = mapped->address, .name = std::string(mapped->name)};
  return std::nullopt;
}

}  // namespace gpusonde::agent
