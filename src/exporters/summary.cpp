// SPDX-License-Identifier: Apache-2.0
#include "exporters/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace gpusonde::exporters {
namespace {

constexpr size_t kHottest = 4;  // with these the summary has ten lines
constexpr size_t kBusiest = 4;
constexpr size_t kMaxNameBytes = 60;

struct Share {
  std::string name;
  std::string where;
  int64_t weight_ns = 0;
};

// Names come from strangers and go to a terminal.
std::string Printable(std::string_view text, size_t limit = kMaxNameBytes) {
  std::string safe(text.substr(0, limit));
  for (char& c : safe)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text.size() > limit ? safe + "…" : safe;
}

std::vector<Share> Largest(const std::map<std::pair<std::string, std::string>, int64_t>& weights,
                           size_t count) {
  std::vector<Share> shares;
  for (const auto& [key, weight] : weights) shares.push_back({key.first, key.second, weight});
  std::ranges::stable_sort(shares, std::greater(), &Share::weight_ns);
  shares.resize(std::min(shares.size(), count));
  return shares;
}

std::string HumanBytes(int64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{:.0f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::string Summarise(const model::Profile& profile, const SummaryFacts& facts) {
  int64_t total_ns = 0, samples = 0;
  std::map<std::pair<std::string, std::string>, int64_t> by_function, by_thread;
  std::set<Id128> processes;
  for (const model::Profile::Sample& sample : profile.samples) {
    total_ns += sample.weight_ns;
    samples += sample.count;
    const int32_t leaf = profile.stacks[static_cast<size_t>(sample.stack)].front();
    const int32_t binary = profile.locations[static_cast<size_t>(leaf)].binary;
    by_function[{model::FrameName(profile, leaf),
                 binary < 0 ? "" : profile.binaries[static_cast<size_t>(binary)].name}] += sample.weight_ns;
    const model::Profile::Thread& thread = profile.threads[static_cast<size_t>(sample.thread)];
    by_thread[{thread.name, fmt::format("{}", thread.tid)}] += sample.weight_ns;
    processes.insert(thread.process);
  }
  const auto percent = [&](int64_t weight_ns) {
    return 100.0 * static_cast<double>(weight_ns) / static_cast<double>(std::max<int64_t>(total_ns, 1));
  };
  const double seconds = static_cast<double>(facts.duration_ns) / 1e9;

  std::string text = fmt::format("recorded  {} for {:.1f} s at {:g} Hz: {}, {}\n", Printable(facts.command),
                                 seconds, facts.sampling_hz, facts.path, HumanBytes(facts.bytes));
  if (samples == 0) {
    text += "cpu       no samples: the program ended, or slept, before the first one was due\n";
  } else {
    text += fmt::format(
        "cpu       {:.2f} of {} CPUs busy, {:.2f} s in {} processes and {} threads ({} samples)\n",
        static_cast<double>(total_ns) / static_cast<double>(std::max<int64_t>(facts.duration_ns, 1)),
        facts.cpus, static_cast<double>(total_ns) / 1e9, processes.size(), by_thread.size(), samples);
    std::vector<std::string> threads;
    for (const Share& share : Largest(by_thread, kBusiest))
      threads.push_back(
          fmt::format("{} ({}) {:.1f} %", Printable(share.name), share.where, percent(share.weight_ns)));
    text += fmt::format("threads   {}\n", fmt::join(threads, ", "));
    for (const Share& share : Largest(by_function, kHottest))
      text += fmt::format("self      {:.1f} %  {}{}\n", percent(share.weight_ns), Printable(share.name),
                          share.where.empty() ? "" : "  (" + Printable(share.where) + ")");
  }
  text += facts.lost.empty() ? "complete  nothing was dropped\n"
                             : fmt::format("dropped   {}\n", fmt::join(facts.lost, "; "));
  if (!facts.poorer.empty()) text += fmt::format("unnamed   {}\n", fmt::join(facts.poorer, "; "));
  text += fmt::format("next      gpusonde view {}\n", facts.path);
  return text;
}

}  // namespace gpusonde::exporters
