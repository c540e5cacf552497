// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/situation.h"

// Phrases that several causes use.
namespace gpusonde::diagnose {

// What may have stopped a thread; the kernel doesn't distinguish these.
inline constexpr std::string_view kStoppers = "by a signal, a tracer or a frozen cgroup";

// "42 µs", "9.1 ms", "38 ms", "8.8 s".
inline std::string Time(double ns) {
  if (ns >= 1e9) return fmt::format("{:.1f} s", ns / 1e9);
  if (ns >= 500 && ns < 99'500) return fmt::format("{:.0f} µs", ns / 1e3);  // of steps of a millisecond
  return fmt::format("{:.{}f} ms", ns / 1e6, ns < 1e7 ? 1 : 0);
}

// "0.4 CPUs", "1 CPU", "12 CPUs".
inline std::string Cpus(double cpus) {
  const std::string amount = cpus < 10 ? fmt::format("{:.2g}", cpus) : fmt::format("{:.0f}", cpus);
  return fmt::format("{} {}", amount, amount == "1" ? "CPU" : "CPUs");
}

inline std::string Percent(double part, double whole) {
  return fmt::format("{:.0f} %", whole > 0 ? 100 * part / whole : 0);
}

// "38 ms of each step were taken by stress-ng in /batch.slice, 9.1 ms by cc1plus": up to three actors.
inline std::string TakenBy(const std::vector<std::pair<Actor, double>>& actors, std::string_view whose = "") {
  std::string text;
  int named = 0;
  for (const auto& [actor, ns] : actors) {
    if (ns < actors.front().second / 5 || ++named > 3) break;
    text += text.empty()
                ? fmt::format("{} of each step were taken by {}{}", Time(ns), whose, NameActor(actor))
                : fmt::format(", {} by {}{}", Time(ns), whose, NameActor(actor));
  }
  return text;
}

// The same for CPU time that other processes took, where gpusonde's own processes count as one, "gpusonde
// itself", and are left out if they took less than a tenth of `lost_ns`. Empty if nobody is left.
inline std::string TakenByOthers(std::vector<std::pair<Actor, double>> actors, double lost_ns) {
  constexpr double kNoticeable = 0.1;
  double self_ns = 0;
  std::erase_if(actors, [&](const auto& each) {
    if (IsSelf(each.first)) self_ns += each.second;
    return IsSelf(each.first);
  });
  std::string text = actors.empty() ? "" : TakenBy(actors);
  if (self_ns > 0 && self_ns >= kNoticeable * lost_ns)
    text += fmt::format("{}{} of each step were taken by gpusonde itself", text.empty() ? "" : "; ",
                        Time(self_ns));
  return text;
}

// "; the program's own priority is low (nice 15)", of its mean nice value (Metric::kProcessNice); empty if
// that is usual or unknown.
inline std::string OwnPriority(std::optional<double> nice) {
  constexpr double kIdle = 19.5;  // rounds to what stands for SCHED_IDLE
  if (nice.value_or(0) < 0.5) return "";
  return fmt::format("; the program's own priority is low ({})",
                     *nice < kIdle ? fmt::format("nice {:.0f}", *nice) : "SCHED_IDLE");
}

// "41 % of the time (2 % before)": the state's share of the steps. Where something else has grown more, "for
// 12 ms (7.9 ms before)".
inline std::string ShareOf(const Situation& situation, State state) {
  if (situation.excess(state) > 0 && situation.during[state] * situation.before.total() <=
                                         situation.before[state] * situation.during.total())
    return fmt::format("for {} ({} before)", Time(situation.during[state]), Time(situation.before[state]));
  return fmt::format("{} of the time ({} before)", Percent(situation.during[state], situation.during.total()),
                     Percent(situation.before[state], situation.before.total()));
}

// The process of the program, but not the workload itself, that was stopped for most of the time in which the
// step was. Nullopt if there is none.
inline std::optional<Actor> StoppedHelper(const Situation& situation) {
  const auto halted = LargestRises(situation.halted_before, situation.halted_during, true);
  if (halted.empty() || halted.front().second <= situation.excess(State::kStopped) / 2) return std::nullopt;
  return halted.front().first;
}

// "; gdb (process 412) let it continue": who ended the stops, and so nearly always also began them, another
// program's process first; empty if unknown.
inline std::string LetContinue(const Situation& situation) {
  for (const bool own : {false, true}) {
    const auto who = LargestRises(situation.stopped_before, situation.stopped_during, own);
    if (!who.empty() && !who.front().first.name.empty())
      return fmt::format("; {} let it continue", NameActor(who.front().first));
  }
  return "";
}

}  // namespace gpusonde::diagnose
