// SPDX-License-Identifier: Apache-2.0
#include "exporters/gpu_account.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "exporters/place.h"
#include "model/helper_threads.h"
#include "model/short_names.h"

namespace gpusonde::exporters {
namespace {

using model::Profile;
using Part = GpuAccount::Part;

// With less idle time than this share, there is nothing to explain.
constexpr double kMinIdleShare = 0.005;
// CPU time while idle explains the idle time when it covers at least this share of it.
constexpr double kMinCpuShare = 0.1;

double ShareOf(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1));
}

std::string PercentText(int64_t part, int64_t whole) {
  const double percent = 100 * ShareOf(part, whole);
  if (percent > 0 && percent < 1) return "< 1 %";
  return percent < 9.95 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

// What launch threads did explains the idle time when the launches after at least this share of it are known.
constexpr double kMinLaunchedShare = 0.1;

// Three names and the lines that launched them fit one line of a wide screen.
constexpr size_t kKernelWidth = 28;
constexpr size_t kLaunchThreadParts = 2;

// Time by name, and within a name by detail.
class Sums {
 public:
  void Add(const std::string& name, const std::string& detail, int64_t time_ns) {
    total_ns_ += time_ns;
    Sum& sum = sums_[name];
    sum.time_ns += time_ns;
    sum.by_detail[detail] += time_ns;
  }
  int64_t total_ns() const { return total_ns_; }

  // The largest, each with its largest detail.
  std::vector<Part> Largest() const {
    std::vector<Part> parts;
    for (const auto& [name, sum] : sums_) {
      const auto top =
          std::ranges::max_element(sum.by_detail, {}, [](const auto& entry) { return entry.second; });
      parts.push_back({name, top->first, sum.time_ns, top->second});
    }
    std::ranges::stable_sort(parts, std::greater(), &Part::time_ns);
    parts.resize(std::min(parts.size(), kMaxParts));
    return parts;
  }

 private:
  struct Sum {
    int64_t time_ns = 0;
    std::map<std::string, int64_t> by_detail;
  };
  std::map<std::string, Sum> sums_;
  int64_t total_ns_ = 0;
};

// Leaves of waits (store::ReadProfile).
constexpr std::string_view kWaitsForCpu = "[waits for a CPU]", kWaitsForGpu = "[waits for a GPU]";

// A wait for a CPU has no place: other programs may take the CPU at any line.
Place PlaceOrLeaf(const Profile& profile, const std::vector<int32_t>& stack) {
  if (!stack.empty() && model::FrameName(profile, stack.front()) == kWaitsForCpu)
    return {std::string(kWaitsForCpu), ""};
  return PlaceOf(profile, stack)
      .value_or(Place{stack.empty() ? "[unknown]" : model::FrameName(profile, stack.front()), ""});
}

// By kernel, with the place that launched it.
Sums SumKernels(const Profile& profile) {
  Sums sums;
  for (const Profile::Sample& sample : profile.samples) {
    if (sample.stack < 0) continue;
    const std::vector<int32_t>& stack = profile.stacks[static_cast<size_t>(sample.stack)];
    const std::optional<Place> place = PlaceOf(profile, stack);
    sums.Add(model::FrameName(profile, stack.empty() ? -1 : stack.front()), place ? place->name : "",
             sample.weight_ns);
  }
  return sums;
}

// By place, with the function it called; counts the threads that `is_meant` selects.
template <class Meant>
Sums SumPlaces(const Profile& profile, Meant&& is_meant) {
  const std::vector<bool> is_helper = model::HelperThreads(profile);
  Sums sums;
  for (const Profile::Sample& sample : profile.samples) {
    if (sample.stack < 0) continue;
    if (sample.thread >= 0) {
      const auto thread = static_cast<size_t>(sample.thread);
      if (is_helper[thread] || !is_meant(profile.threads[thread])) continue;
    }
    const Place place = PlaceOrLeaf(profile, profile.stacks[static_cast<size_t>(sample.stack)]);
    sums.Add(place.name, place.called, sample.weight_ns);
  }
  return sums;
}

// The processes that use GPUs and their children: only these keep the GPUs busy.
class Family {
 public:
  Family(const Profile& gpu_time, const Profile& cpu) {
    for (const Profile::Sample& sample : gpu_time.samples)
      if (sample.thread >= 0) Add(gpu_time.threads[static_cast<size_t>(sample.thread)]);
    for (bool grows = !pids_.empty(); grows;) {
      grows = false;
      for (const Profile::Thread& thread : cpu.threads)
        if (pids_.contains(thread.parent_pid)) grows |= Add(thread);
    }
  }

  // Everything, if it isn't known which processes use the GPUs.
  bool Has(const Profile::Thread& thread) const {
    return processes_.empty() || processes_.contains(thread.process);
  }

 private:
  bool Add(const Profile::Thread& thread) {
    if (thread.pid > 0) pids_.insert(thread.pid);
    return processes_.insert(thread.process).second;
  }

  std::set<int32_t> pids_;
  std::set<Id128> processes_;
};

Sums CpuWhileIdle(const GpuFacts& facts) {
  const Family family(facts.time, *facts.cpu_while_idle);
  return SumPlaces(*facts.cpu_while_idle, [&](const Profile::Thread& thread) { return family.Has(thread); });
}

// Waits of launch threads, except those for the GPU itself, which is busy then.
Sums WaitsOfLaunchThreads(const GpuFacts& facts) {
  std::set<std::pair<Id128, int32_t>> launch_threads;
  for (const Profile::Thread& thread : facts.time.threads)
    if (thread.tid != 0) launch_threads.emplace(thread.process, thread.tid);
  Profile waits = *facts.waits;
  std::erase_if(waits.samples, [&](const Profile::Sample& sample) {
    if (sample.stack < 0) return true;
    const auto& stack = waits.stacks[static_cast<size_t>(sample.stack)];
    return !stack.empty() && model::FrameName(waits, stack.front()) == kWaitsForGpu;
  });
  return SumPlaces(waits, [&](const Profile::Thread& thread) {
    return launch_threads.contains({thread.process, thread.tid});
  });
}

Sums LaunchThreadsWhileIdle(const GpuFacts& facts) {
  Sums sums;
  for (const model::LaunchThreadPart& part : *facts.launch_threads) {
    if (!part.range.empty())
      sums.Add(part.range, part.call, part.time_ns);
    else
      sums.Add(part.call.empty() ? "no range or call" : part.call, "", part.time_ns);
  }
  return sums;
}

int64_t IdleNs(const GpuFacts& facts) { return std::max<int64_t>(facts.observed_ns - facts.busy_ns, 0); }

// When the same line launched consecutive kernels, it is named once, after the last.
std::string BusySentence(const GpuAccount& account) {
  std::vector<std::string> kernels;
  for (const Part& part : account.hottest) kernels.push_back(model::CondensedName(part.name));
  const model::ShortNames shorten({kernels.begin(), kernels.end()}, kKernelWidth);
  std::vector<std::string> parts;
  for (size_t i = 0; i < account.hottest.size(); ++i) {
    const Part& part = account.hottest[i];
    const auto launched_by = [](const Part& of) {
      return of.detail.empty() ? "" : fmt::format(" ← {}{}", of.detail, of.AndOthers());
    };
    const std::string by = launched_by(part);
    const bool repeated = i + 1 < account.hottest.size() && launched_by(account.hottest[i + 1]) == by;
    parts.push_back(fmt::format("{} {}{}", PercentText(part.time_ns, account.kernels_ns), shorten(kernels[i]),
                                repeated ? "" : by));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string Named(const Part& part) {
  return part.detail.empty() ? part.name : fmt::format("{} → {}", part.name, part.detail);
}

std::string IdleSentence(const GpuAccount& account, int64_t idle_ns) {
  using enum GpuAccount::IdleCause;
  if (account.cause == kCpu) {
    const Part& top = account.while_idle.front();
    return fmt::format("{} of the CPU time during that was in {}{}",
                       PercentText(top.time_ns, account.idle_cpu_ns), Named(top),
                       account.one_second_in == 1
                           ? ""
                           : fmt::format(" (estimated from one second in {})", account.one_second_in));
  }
  if (account.cause == kWaits) {
    const Part& top = account.waiting_in.front();
    return fmt::format("the threads that launch GPU work waited, {} of the time {}",
                       PercentText(top.time_ns, account.waited_ns),
                       top.name == kWaitsForCpu ? "for a CPU" : "in " + Named(top));
  }
  if (account.cause == kLaunchThreads) {
    std::vector<std::string> parts;
    for (const Part& part : account.launch_threads_in | std::views::take(kLaunchThreadParts))
      parts.push_back(fmt::format("{} in {}", PercentText(part.time_ns, idle_ns), Named(part)));
    return fmt::format("of that time, the threads that launch GPU work spent {}", fmt::join(parts, ", "));
  }
  return fmt::format("the programs that use it ran on a CPU for {:.2g} s of those {:.2g} s",
                     static_cast<double>(account.idle_cpu_ns) / 1e9, static_cast<double>(idle_ns) / 1e9);
}

}  // namespace

GpuAccount AccountOf(const GpuFacts& facts) {
  using enum GpuAccount::IdleCause;
  GpuAccount account;
  const Sums kernels = SumKernels(facts.time);
  account.kernels_ns = kernels.total_ns();
  account.hottest = kernels.Largest();
  for (const std::string& part : {ShareOfDevices(facts), ActivityOf(facts)})
    if (!part.empty()) account.busy += part + "; ";
  account.busy += BusySentence(account);
  if (facts.cpu_while_idle.has_value()) {
    const Sums cpu = CpuWhileIdle(facts);
    account.idle_cpu_ns = cpu.total_ns();
    account.one_second_in = facts.cpu_while_idle->one_second_in;
    account.while_idle = cpu.Largest();
  }
  if (facts.waits.has_value()) {
    const Sums waits = WaitsOfLaunchThreads(facts);
    account.waited_ns = waits.total_ns();
    account.waiting_in = waits.Largest();
  }
  if (facts.launch_threads.has_value()) {
    const Sums launch_threads = LaunchThreadsWhileIdle(facts);
    account.launch_threads_ns = launch_threads.total_ns();
    account.launch_threads_in = launch_threads.Largest();
  }
  const int64_t idle_ns = IdleNs(facts);
  const bool cpu_explains = ShareOf(account.idle_cpu_ns, idle_ns) >= kMinCpuShare;
  if (!account.while_idle.empty() && (cpu_explains || account.waiting_in.empty()))
    account.cause = kCpu;
  else if (!account.waiting_in.empty())
    account.cause = kWaits;
  else if (ShareOf(account.launch_threads_ns, idle_ns) >= kMinLaunchedShare)
    account.cause = kLaunchThreads;
  if (ShareOf(idle_ns, facts.observed_ns) < kMinIdleShare) return account;
  if (facts.cpu_while_idle.has_value() || account.cause != kUnknown)
    account.idle = IdleSentence(account, idle_ns);
  else if (facts.launch_threads.has_value())
    account.idle = "CPUs were not sampled, so the reason is unknown";
  else
    account.idle = "select a shorter time to see what the threads that launch GPU work did meanwhile";
  return account;
}

std::string ActivityOf(const GpuFacts& facts) {
  std::vector<std::string> parts;
  if (facts.sm_active.has_value()) parts.push_back(fmt::format("SM activity {:.0f} %", *facts.sm_active));
  if (facts.tensor_active.has_value())
    parts.push_back(fmt::format("tensor pipe {:.0f} %", *facts.tensor_active));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ShareOfDevices(const GpuFacts& facts) {
  if (facts.idle_devices == 0) return "";
  const int64_t with_work = std::ssize(facts.devices);
  return fmt::format("work on {} of {} GPUs", with_work, with_work + facts.idle_devices);
}

bool NeedsWaits(const GpuFacts& facts) {
  const int64_t idle_ns = IdleNs(facts);
  if (ShareOf(idle_ns, facts.observed_ns) < kMinIdleShare) return false;
  if (!facts.cpu_while_idle.has_value()) return true;
  return ShareOf(CpuWhileIdle(facts).total_ns(), idle_ns) < kMinCpuShare;
}

}  // namespace gpusonde::exporters
