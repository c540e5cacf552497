// SPDX-License-Identifier: Apache-2.0
#include "exporters/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <span>

#include "base/counted.h"
#include "base/printable.h"
#include "base/shell_word.h"
#include "model/helper_threads.h"

namespace gpusonde::exporters {
namespace {

constexpr size_t kLines = 10;
constexpr size_t kHottest = 4;
constexpr size_t kHottestKernels = 3;
constexpr size_t kBusiest = 4;
constexpr size_t kStepParts = 5;
constexpr size_t kPoorer = 3;
constexpr size_t kMaxNameCharacters = 60;

// By (name, where).
using Weights = std::map<std::pair<std::string, std::string>, int64_t>;

struct Share {
  std::string name;
  std::string where;
  int64_t weight_ns = 0;
};

std::string Shown(std::string_view name) { return Shorten(Printable(name), kMaxNameCharacters); }

// A command that has no room loses the folders of its files first.
std::string ShownCommand(const std::string& command) {
  return Shown(CountCharacters(command) > kMaxNameCharacters ? WithoutFolders(command) : command);
}

std::vector<Share> Largest(const Weights& weights, size_t count) {
  std::vector<Share> shares;
  for (const auto& [key, weight] : weights) shares.push_back({key.first, key.second, weight});
  std::ranges::stable_sort(shares, std::greater(), &Share::weight_ns);
  shares.resize(std::min(shares.size(), count));
  return shares;
}

// Threads of one name count together if there are more of them than are listed: those of `make -j`, say.
Weights WithGroups(const Weights& by_thread) {
  std::map<std::string, int64_t> threads;
  for (const auto& [key, weight] : by_thread) ++threads[key.first];
  Weights grouped;
  for (const auto& [key, weight] : by_thread) {
    const int64_t count = threads[key.first];
    grouped[{key.first, count > static_cast<int64_t>(kBusiest) ? Counted(count, "thread") : key.second}] +=
        weight;
  }
  return grouped;
}

std::string HumanBytes(int64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{:.0f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

double Percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1));
}

// What the CPU did while the GPUs were idle, one line.
std::string WhileIdle(const GpuAccount& account) {
  using enum GpuAccount::IdleCause;
  if (account.cause == kUnknown) return "while idle  no CPU time and no waits were sampled\n";
  const bool cpu = account.cause == kCpu;
  const GpuAccount::Part& top = cpu ? account.while_idle.front() : account.waiting_in.front();
  const int64_t total_ns = cpu ? account.idle_cpu_ns : account.waited_ns;
  return fmt::format("while idle  {:.1f} %  {}{}  (of {}{:.2f} s of {})\n", Percent(top.time_ns, total_ns),
                     Shown(top.name), top.detail.empty() ? "" : " → " + Shown(top.detail),
                     cpu && account.one_second_in > 1 ? "about " : "", static_cast<double>(total_ns) / 1e9,
                     cpu ? "CPU time" : "waiting");
}

// The hottest kernels, one line each, with the line that launched most of it.
std::string HottestKernels(const GpuAccount& account, size_t count) {
  std::string lines;
  for (const GpuAccount::Part& part : account.hottest | std::views::take(count))
    lines +=
        fmt::format("gpu time  {:.1f} %  {}{}\n", Percent(part.time_ns, account.kernels_ns), Shown(part.name),
                    part.detail.empty() ? "" : fmt::format(" ← {}{}", Shown(part.detail), part.AndOthers()));
  return lines;
}

// Why a recording has less GPU time than it is long. `record` itself pauses nothing.
std::string Paused(const GpuFacts& gpu) {
  if (gpu.paused_ns < gpu.observed_ns / 100) return "";
  return fmt::format(
      " (paused for {:.1f} s more by the overhead budget of `gpusonde up`, or by another profiler)",
      static_cast<double>(gpu.paused_ns) / 1e9);
}

// How busy the devices were, one line.
std::string Busy(const GpuFacts& gpu) {
  std::vector<std::string> names;
  for (const model::Profile::Device& device : gpu.devices) {
    std::string name = Shown(device.name);
    // Add "(simulated)" unless the device's name already says so.
    if (device.simulated && name.find("imulated") == std::string::npos) name += " (simulated)";
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  const std::string activity = ActivityOf(gpu);
  const std::string share = ShareOfDevices(gpu);
  return fmt::format(
      "gpu       busy {:.1f} % of {:.1f} s{} on {}{}{}; kernels {}{}{}\n",
      Percent(gpu.busy_ns, gpu.observed_ns), static_cast<double>(gpu.observed_ns) / 1e9, Paused(gpu),
      gpu.devices.size() > 1 ? fmt::format("{} devices: ", gpu.devices.size()) : "", fmt::join(names, ", "),
      share.empty() ? "" : " (" + share + ")", gpu.kernels, activity.empty() ? "" : "; ", activity);
}

// The function and file of a frame. Of a file without symbols only the file is named: its addresses mean
// nothing.
std::pair<std::string, std::string> SelfOf(const model::Profile& profile, int32_t leaf) {
  if (leaf < 0) return {"[unknown]", ""};
  const model::Profile::Location& location = profile.locations[static_cast<size_t>(leaf)];
  const std::string binary =
      location.binary < 0 ? "" : profile.binaries[static_cast<size_t>(location.binary)].name;
  if (location.lines.empty() && !binary.empty()) return {fmt::format("[{}]", binary), ""};
  std::string name = model::FrameName(profile, leaf);
  const bool names_file = name.starts_with('[');  // of a file without symbols, as a range in it
  return {std::move(name), names_file ? "" : binary};
}

// A label within a line begins with a small letter, unless it is an abbreviation: "own processes", "CPU".
std::string WithinLine(std::string label) {
  const auto is_between = [](char c, char first, char last) { return c >= first && c <= last; };
  if (label.size() > 1 && is_between(label[0], 'A', 'Z') && is_between(label[1], 'a', 'z'))
    label[0] = static_cast<char>(label[0] - 'A' + 'a');
  return label;
}

// What the steps of the program with the most of them take their time for, one line.
std::string StepsLine(const SummaryFacts::Steps& steps) {
  std::vector<std::string> parts;
  for (const auto& [label, ns] : steps.parts | std::views::take(kStepParts))
    if (ns >= steps.time_ns / 100)
      parts.push_back(fmt::format("{:.0f} % {}", 100 * ns / steps.time_ns, WithinLine(label)));
  std::vector<std::string> others;
  if (steps.other_loops > 0) others.push_back(Counted(steps.other_loops, "other loop"));
  if (steps.other_processes > 0) others.push_back(Counted(steps.other_processes, "other process"));
  const std::string between =
      steps.between_ns < steps.time_ns / 100
          ? ""
          : fmt::format("; waits {:.1f} ms before each, as for a request", steps.between_ns / 1e6);
  return fmt::format("steps     {} of {}{}: {:.1f} ms each usually, {}{}\n", steps.count,
                     Shown(steps.process),
                     others.empty() ? "" : fmt::format(" (and those of {})", fmt::join(others, ", ")),
                     steps.time_ns / 1e6, fmt::join(parts, ", "), between);
}

// The worst incident, one line.
std::string Slow(const SummaryFacts& facts) {
  const size_t more = facts.incidents.size() - 1;
  return fmt::format(
      "slow      {}{}\n", Printable(facts.incidents.front()),
      more == 0 ? "" : fmt::format("  (and {} more: gpusonde diagnose {})", more, ShellWord(facts.path)));
}

// "stacks cut at 127 frames (12)": the count comes last, as "1 stacks" would be wrong.
std::string PhraseOf(const SummaryFacts::Drop& drop) {
  std::string_view meaning = drop.meaning;
  if (meaning.ends_with('.')) meaning.remove_suffix(1);
  return fmt::format("{} ({})", WithinLine(std::string(meaning)), drop.count);
}

std::string PhrasesOf(std::span<const SummaryFacts::Drop> drops) {
  return fmt::format("{}", fmt::join(drops | std::views::transform(PhraseOf), "; "));
}

// What has less detail than it could have, one line. There are many reasons, most of them of a few frames.
std::string Poorer(std::span<const SummaryFacts::Drop> reasons) {
  const size_t shown = std::min(reasons.size(), kPoorer);
  return fmt::format(
      "detail    missing: {}{}\n", PhrasesOf(reasons.first(shown)),
      reasons.size() > shown
          ? fmt::format("; and {} (table drops)",
                        Counted(std::ssize(reasons) - static_cast<int64_t>(shown), "lesser reason"))
          : "");
}

// How long was recorded: a program may end within milliseconds.
std::string Length(int64_t duration_ns) {
  const double seconds = static_cast<double>(duration_ns) / 1e9;
  return seconds < 0.9995 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.1f} s", seconds);
}

}  // namespace

std::string Summarise(const model::Profile& profile, const SummaryFacts& facts) {
  int64_t total_ns = 0, samples = 0;
  Weights by_function, by_thread;
  const std::vector<bool> helpers =
      model::HelperThreads(profile);  // their CPU time counts, they aren't named
  std::set<Id128> processes;
  for (const model::Profile::Sample& sample : profile.samples) {
    total_ns += sample.weight_ns;
    samples += sample.count;
    const auto* stack = sample.stack < 0 ? nullptr : &profile.stacks[static_cast<size_t>(sample.stack)];
    by_function[SelfOf(profile, stack == nullptr || stack->empty() ? -1 : stack->front())] +=
        sample.weight_ns;
    const model::Profile::Thread& thread = profile.threads[static_cast<size_t>(sample.thread)];
    if (!helpers[static_cast<size_t>(sample.thread)])
      by_thread[{thread.name, fmt::format("{}", thread.tid)}] += sample.weight_ns;
    processes.insert(thread.process);
  }

  const bool cpu = facts.sampling_hz > 0;
  std::string text =
      fmt::format("recorded  {} for {}{}: {}, {}\n", ShownCommand(facts.command), Length(facts.duration_ns),
                  cpu ? fmt::format(" at {:g} Hz", facts.sampling_hz) : "", Printable(facts.path),
                  HumanBytes(facts.bytes));
  // For a program with GPU work, kernels replace the threads and most CPU functions, and steps the last one.
  const bool gpu = facts.gpu.has_value();
  const size_t others =
      (gpu ? 7u : 5u) + (facts.poorer.empty() ? 0u : 1u) + (facts.incidents.empty() ? 0u : 1u);
  if (gpu) {
    const GpuAccount account = AccountOf(*facts.gpu);
    text += Busy(*facts.gpu) + (cpu ? WhileIdle(account) : "") +
            HottestKernels(account, std::min(kHottestKernels, kLines - others));
  }
  if (facts.steps.has_value()) text += StepsLine(*facts.steps);
  if (!facts.incidents.empty()) text += Slow(facts);
  if (!cpu) {
    text += "cpu       not sampled\n";
  } else if (samples == 0) {
    text += "cpu       no samples: the program ended, or slept, before the first one was due\n";
  } else {
    text += fmt::format(
        "cpu       {:.2f} of {} busy, {:.2f} s in {} and {} ({})\n",
        static_cast<double>(total_ns) / static_cast<double>(std::max<int64_t>(facts.duration_ns, 1)),
        Counted(facts.cpus, "CPU"), static_cast<double>(total_ns) / 1e9,
        Counted(std::ssize(processes), "process"), Counted(std::ssize(by_thread), "thread"),
        Counted(samples, "sample"));
    std::vector<std::string> threads;
    for (const Share& share : Largest(WithGroups(by_thread), kBusiest))
      threads.push_back(fmt::format("{} ({}) {:.1f} %", Shown(share.name), share.where,
                                    Percent(share.weight_ns, total_ns)));
    if (!gpu && !threads.empty()) text += fmt::format("threads   {}\n", fmt::join(threads, ", "));
    for (const Share& share :
         Largest(by_function, gpu ? (facts.steps.has_value() ? 0 : 1) : std::min(kHottest, kLines - others)))
      text += fmt::format("self      {:.1f} %  {}{}\n", Percent(share.weight_ns, total_ns), Shown(share.name),
                          share.where.empty() ? "" : "  (" + Shown(share.where) + ")");
  }
  text += facts.lost.empty() ? "complete  nothing was dropped\n"
                             : fmt::format("dropped   {}\n", PhrasesOf(facts.lost));
  if (!facts.poorer.empty()) text += Poorer(facts.poorer);
  text += fmt::format("next      gpusonde view {}\n", ShellWord(facts.path));
  return text;
}

}  // namespace gpusonde::exporters
