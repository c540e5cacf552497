// SPDX-License-Identifier: Apache-2.0
#include "server/tree_roots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/id128.h"
#include "base/saturated.h"

namespace gpusonde::server {
namespace {

using model::Profile;

// The smallest share of the time: 1 / 100 is the width of a readable frame on a wide screen.
constexpr int64_t kMinShareDivisor = 100;

std::string NameOf(const Profile::Thread& thread) {
  return thread.process_name.empty() ? "[unknown process]" : thread.process_name;
}

// The command line without the program's folder, which seldom distinguishes two processes.
std::string ProcessText(const Profile::Thread& thread) {
  std::string_view command = thread.command;
  const size_t slash = command.substr(0, command.find(' ')).rfind('/');
  if (slash != std::string_view::npos) command.remove_prefix(slash + 1);
  return fmt::format("{} (pid {})", command.empty() ? NameOf(thread) : command, thread.pid);
}

std::string ThreadText(const Profile::Thread& thread) {
  if (thread.tid == 0) return thread.name.empty() ? "[unknown thread]" : thread.name;
  if (thread.tid == thread.pid) return "main thread";
  return fmt::format("thread {} ({})", thread.name, thread.tid);
}

class Namer {
 public:
  Namer(const Profile& profile, int32_t first) : profile_(profile), first_(first) {
    std::vector<int64_t> thread_ns(profile.threads.size());
    for (const Profile::Sample& sample : profile.samples) {
      if (sample.thread < 0) continue;
      int64_t& time = thread_ns[static_cast<size_t>(sample.thread)];
      time = AddSaturated(time, std::max<int64_t>(sample.weight_ns, 0));
      total_ns_ = AddSaturated(total_ns_, std::max<int64_t>(sample.weight_ns, 0));
    }
    for (size_t i = 0; i < thread_ns.size(); ++i) {
      int64_t& time = process_ns_[profile.threads[i].process];
      time = AddSaturated(time, thread_ns[i]);
    }
    for (const auto& [process, time_ns] : process_ns_) is_small_[process] = IsSmall(time_ns);
    CountProcesses();
    for (size_t i = 0; i < thread_ns.size(); ++i) {
      small_thread_.push_back(IsSmall(thread_ns[i]));
      if (small_thread_.back()) ++small_threads_[{ProcessKey(i), profile.threads[i].name}];
    }
  }

  TreeRoots Take() {
    std::map<std::pair<int32_t, int32_t>, int32_t> pairs;
    for (size_t i = 0; i < profile_.threads.size(); ++i) {
      const int32_t process = Number(ProcessName(i), "process");
      const int32_t thread = Number(ThreadName(i), "thread");
      const auto [entry, is_new] =
          pairs.try_emplace({process, thread}, static_cast<int32_t>(roots_.pairs.size()));
      if (is_new) roots_.pairs.push_back({process, thread});
      roots_.pair_of_thread.push_back(entry->second);
    }
    return std::move(roots_);
  }

 private:
  bool IsSmall(int64_t time_ns) const { return time_ns < total_ns_ / kMinShareDivisor; }

  void CountProcesses() {
    std::map<Id128, std::string> names;
    for (const Profile::Thread& thread : profile_.threads) names.emplace(thread.process, NameOf(thread));
    for (const auto& [process, name] : names)
      if (is_small_[process]) ++small_processes_[name];
  }

  bool SharesProcess(const Profile::Thread& thread) const {
    return is_small_.at(thread.process) && small_processes_.at(NameOf(thread)) > 1;
  }

  // Equal for processes that share a frame.
  std::string ProcessKey(size_t i) const {
    const Profile::Thread& thread = profile_.threads[i];
    return SharesProcess(thread) ? NameOf(thread) : thread.process.ToHex();
  }

  std::string ProcessName(size_t i) const {
    const Profile::Thread& thread = profile_.threads[i];
    if (!SharesProcess(thread)) return ProcessText(thread);
    return fmt::format("{} ({} processes)", NameOf(thread), small_processes_.at(NameOf(thread)));
  }

  std::string ThreadName(size_t i) const {
    const Profile::Thread& thread = profile_.threads[i];
    const int64_t count = small_thread_[i] ? small_threads_.at({ProcessKey(i), thread.name}) : 1;
    if (count == 1) return ThreadText(thread);
    return fmt::format("thread {} ({} threads)", thread.name, count);
  }

  int32_t Number(std::string name, std::string_view kind) {
    const auto [entry, is_new] =
        numbers_.try_emplace({std::move(name), kind}, first_ + static_cast<int32_t>(roots_.functions.size()));
    if (is_new) roots_.functions.push_back({entry->first.first, kind});
    return entry->second;
  }

  const Profile& profile_;
  int32_t first_;
  int64_t total_ns_ = 0;
  std::map<Id128, int64_t> process_ns_;
  std::map<Id128, bool> is_small_;
  std::map<std::string, int64_t> small_processes_;  // by name
  std::vector<bool> small_thread_;
  std::map<std::pair<std::string, std::string>, int64_t> small_threads_;  // by process key and name
  std::map<std::pair<std::string, std::string_view>, int32_t> numbers_;
  TreeRoots roots_;
};

}  // namespace

TreeRoots RootsOf(const Profile& profile, int32_t first) { return Namer(profile, first).Take(); }

}  // namespace gpusonde::server
