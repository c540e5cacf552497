// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/report/quantities.h"
#include "base/counted.h"
#include "base/printable.h"
#include "base/text.h"
#include "compare/comparison.h"
#include "compare/single_runs.h"
#include "model/short_names.h"

namespace gpusonde::compare {
namespace {

constexpr size_t kKernelsShown = 20, kOthersShown = 8, kSentencesOfKernels = 6;
// Student's t for 95 % is 2.8 with so many runs, and 4.3 with two of each side.
constexpr int64_t kEnoughRuns = 6;
constexpr size_t kKindsShown = 4, kStacksShown = 8, kFramesShown = 4;
constexpr size_t kMaxFrame = 60;            // bytes
constexpr double kMuchUnmatched = 0.2;      // of the time of kernels
constexpr double kNoticeableShare = 0.005;  // of the span: smaller parts have no sentence

std::string Time(double ns) { return analyze::Time(std::llround(ns)); }

// "+1.235 ms".
std::string Difference(double ns) { return (ns < 0 ? "−" : "+") + Time(std::abs(ns)); }

// 1.123 as "12.3 %"; 0.9 as "−10.0 %".
std::string Percent(double ratio) {
  return fmt::format("{}{:.1f} %", ratio < 1 ? "−" : "", std::abs(ratio - 1) * 100);
}

std::string Interval(const Ratio& ratio) {
  std::string text = fmt::format("95 % interval: {} to {}", Percent(ratio.low), Percent(ratio.high));
  if (ratio.significant && ratio.apart.has_value() && ratio.low <= 1 && ratio.high >= 1)
    text += fmt::format("; apart from what all kernels may have changed together: {} to {}",
                        Percent(ratio.apart->low), Percent(ratio.apart->high));
  return text;
}

// The change that would be found in kernels with nine tenths of the time of those that are tested.
double DetectableOf(std::span<const KernelLine> kernels) {
  std::vector<std::pair<double, double>> changes;  // detectable, weight
  double all = 0;
  for (const KernelLine& kernel : kernels)
    if (kernel.duration.has_value()) {
      changes.emplace_back(kernel.duration->detectable, kernel.line.b_ns);
      all += kernel.line.b_ns;
    }
  std::ranges::sort(changes);
  double below = 0;
  for (const auto& [detectable, weight] : changes) {
    below += weight;
    if (below >= 0.9 * all) return detectable;
  }
  return 1;
}

class TextWriter {
 public:
  explicit TextWriter(const Comparison& comparison) : comparison_(comparison), shown_(NamesIn(comparison)) {}

  std::string Write() {
    Findings();
    Sides();
    Times();
    Kernels("Kernels", comparison_.kernels);
    Kernels("Phases: annotated ranges, on the host", comparison_.phases);
    Others("Kinds of work, by the names of kernels", comparison_.kinds);
    Others("CUDA graphs", comparison_.graphs);
    Others("Copies", comparison_.copies);
    Others("API calls", comparison_.calls);
    for (const StackDiff& diff : comparison_.stacks) Stacks(diff);
    return std::move(out_);
  }

  // The findings print a sentence a line.
  std::vector<std::string> Sentences() {
    Findings();
    std::vector<std::string> sentences;
    for (std::string_view rest = out_; !rest.empty();) {
      std::string_view line = TakeLine(rest);
      if (line.starts_with("- ")) line.remove_prefix(2);
      if (!line.empty()) sentences.emplace_back(line);
    }
    return sentences;
  }

 private:
  template <class... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void Findings() {
    Pace();
    if (comparison_.duration.has_value() && comparison_.duration->significant)
      Print("- Kernels take {} {} than before, per launch ({}).",
            Percent(std::max(comparison_.duration->ratio, 2 - comparison_.duration->ratio)),
            comparison_.duration->ratio > 1 ? "longer" : "less time", Interval(*comparison_.duration));
    ChangedKernels(comparison_.kernels, "kernel");
    ChangedKernels(comparison_.phases, "phase");
    NewAndGone();
    Kinds();
    OtherTimes();
    Caveats();
  }

  void Pace() {
    const double span = comparison_.a.times.span_ns;
    if (!comparison_.work.has_value() && comparison_.kernels.empty()) {
      Print(
          "Neither run has kernels (of CUDA graphs that were traced as a whole, what ran in them isn't "
          "known), "
          "so how much work each did can't be told: times are compared as they are.");
    } else if (!comparison_.work.has_value()) {
      Print(
          "The runs differ too much in the kernels they launched to tell how much work each did: times are "
          "compared as they are.");
    } else if (!comparison_.pace.has_value()) {
      Print(
          "B takes {} instead of {} for A's amount of work; the traces are too short, or the runs of a side "
          "too "
          "different, to know how certain that is.",
          Time(comparison_.times.front().b_ns), Time(span));
    } else {
      const Ratio& pace = *comparison_.pace;
      const std::string_view work = comparison_.work_by_steps ? "as many steps" : "the same work";
      const std::string change = fmt::format("{} {}", Percent(std::max(pace.ratio, 2 - pace.ratio)),
                                             pace.ratio > 1 ? "more time" : "less time");
      if (pace.significant)
        Print("B takes {} than A for {} ({}).", change, work, Interval(pace));
      else
        Print("B takes {} than A for {}, but the difference isn't significant ({}).", change, work,
              Interval(pace));
    }
  }

  // What the change costs.
  static double CostOf(const KernelLine& kernel) {
    const bool by_duration = kernel.change == Change::kSlower || kernel.change == Change::kFaster;
    return by_duration && !kernel.other_shapes ? kernel.slower_ns : kernel.line.more_ns();
  }

  void ChangedKernels(const std::vector<KernelLine>& lines, std::string_view what) {
    std::vector<const KernelLine*> changed;
    for (const KernelLine& kernel : lines)
      if (kernel.change != Change::kNone && kernel.change != Change::kOnlyInA &&
          kernel.change != Change::kOnlyInB)
        changed.push_back(&kernel);
    std::ranges::stable_sort(changed, std::greater<>(),
                             [](const KernelLine* kernel) { return std::abs(CostOf(*kernel)); });
    const size_t sentences = std::min(changed.size(), kSentencesOfKernels);
    for (const KernelLine* kernel : std::span(changed).first(sentences))
      Print("- {}{} {}: {}.", what == "phase" ? "Phase " : "", shown_(kernel->line.name),
            WhatChanged(*kernel, what == "phase"), Difference(CostOf(*kernel)));
    double others_ns = 0;
    for (const KernelLine* kernel : std::span(changed).subspan(sentences)) others_ns += CostOf(*kernel);
    if (changed.size() > sentences)
      Print("- {} changed too: {} in total.",
            Counted(static_cast<int64_t>(changed.size() - sentences), "more " + std::string(what)),
            Difference(others_ns));
  }

  static std::string WhatChanged(const KernelLine& kernel, bool phase) {
    if (kernel.change == Change::kMoreLaunches || kernel.change == Change::kFewerLaunches)
      return fmt::format("is {} {:.0f} times instead of {:.0f}", phase ? "entered" : "launched",
                         kernel.line.count_b, kernel.line.count_a);
    const Ratio& ratio = *kernel.duration;
    return fmt::format("{}takes {} {}{} ({})", kernel.other_shapes ? "is launched in other shapes, and " : "",
                       Percent(std::max(ratio.ratio, 2 - ratio.ratio)), ratio.ratio > 1 ? "longer" : "less",
                       phase ? "" : " per launch", Interval(ratio));
  }

  void NewAndGone() {
    struct Only {
      int64_t count = 0;
      double ns = 0;
    } in_a, in_b;
    for (const KernelLine& kernel : comparison_.kernels) {
      if (kernel.change == Change::kOnlyInA) in_a = {in_a.count + 1, in_a.ns + kernel.line.a_ns};
      if (kernel.change == Change::kOnlyInB) in_b = {in_b.count + 1, in_b.ns + kernel.line.b_ns};
    }
    if (in_a.count + in_b.count > 0)
      Print("- {} only in A ({}), {} only in B ({}): {}.", Counted(in_a.count, "kernel"), Time(in_a.ns),
            Counted(in_b.count, "kernel"), Time(in_b.ns), Difference(in_b.ns - in_a.ns));
  }

  // What kinds of work the time went to, where many kernels can't be matched one by one.
  void Kinds() {
    double all_ns = 0, unmatched_ns = 0;
    for (const KernelLine& kernel : comparison_.kernels) {
      all_ns += kernel.line.a_ns + kernel.line.b_ns;
      const bool is_in_both = kernel.line.count_a > 0 && kernel.line.count_b > 0;
      if (!is_in_both) unmatched_ns += kernel.line.a_ns + kernel.line.b_ns;
    }
    if (unmatched_ns <= 0 || unmatched_ns < kMuchUnmatched * all_ns) return;
    Print("- {:.0f} % of the kernel time is in kernels that only one side has. By kinds of work:",
          100 * unmatched_ns / all_ns);
    for (const Line& kind :
         std::span(comparison_.kinds).first(std::min(comparison_.kinds.size(), kKindsShown)))
      Print("- {}: {} instead of {}, {}.", analyze::Capitalized(kind.name), Time(kind.b_ns), Time(kind.a_ns),
            Difference(kind.more_ns()));
  }

  // Where a rank's time that is not computation went.
  void OtherTimes() {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSentences = {{
        {"communication", "communicates without computing meanwhile"},
        {"copies", "copies without computing meanwhile"},
        {"idle_host", "waits for the host to launch something"},
        {"idle_other", "waits between two events, or for something else than the host"},
    }};
    for (const Line& part : comparison_.times)
      for (const auto& [name, does] : kSentences)
        if (part.name == name && std::abs(part.more_ns()) > kNoticeableShare * comparison_.a.times.span_ns)
          Print("- The GPU {} for {} instead of {}: {}.", does, Time(part.b_ns), Time(part.a_ns),
                Difference(part.more_ns()));
  }

  void Caveats() {
    int64_t tested = 0, both = 0;
    for (const KernelLine& kernel : comparison_.kernels) {
      tested += kernel.duration.has_value() ? 1 : 0;
      both += kernel.line.count_a > 0 && kernel.line.count_b > 0 && !kernel.communication ? 1 : 0;
    }
    Print("");
    const std::string known = Counted(both, "kernel");
    if (both == 0)
      Print("No kernel but those of communication is in both runs, so no durations could be tested.");
    else if (tested == 0)
      Print(
          "The durations of none of {} that are in both runs could be tested: there are too few launches of "
          "equal "
          "shapes.",
          known);
    else
      Print(
          "The durations of {} of {} that are in both runs could be tested; in kernels with 90 % of their "
          "time, a "
          "change of {} would have been found in 95 of 100 pairs of runs.",
          tested, known, Percent(DetectableOf(comparison_.kernels)));
    Runs();
  }

  void Runs() {
    const int64_t runs = comparison_.a.runs + comparison_.b.runs;
    if (runs == 2) {
      Print(
          "With one run each, how much runs differ isn't known: {:.0f} % is assumed for all kernels "
          "together, and "
          "how much kernels differ from each other tells the rest. Several runs of each side find smaller "
          "changes.",
          100 * SingleRuns::kAssumedDeviation);
      return;
    }
    std::string varies;
    if (comparison_.pace.has_value() && comparison_.pace->between_runs.has_value())
      varies =
          fmt::format("; runs of a side differ by {:.1f} % in the time for equal work (standard deviation)",
                      *comparison_.pace->between_runs * 100);
    Print("Intervals include the variation from run to run, of {} of A and {} of B{}.",
          Counted(comparison_.a.runs, "run"), comparison_.b.runs, varies);
    if (runs < kEnoughRuns)
      Print(
          "That variation is hardly known from so few runs; three or more of each side find smaller "
          "changes.");
  }

  void Sides() {
    for (const auto& [side, run] : {std::pair("A", &comparison_.a), std::pair("B", &comparison_.b)}) {
      std::string paths;
      if (run->paths.size() == 1)
        paths = Printable(run->paths.front());
      else
        paths = fmt::format("{} and {} more", Printable(run->paths.front()), run->paths.size() - 1);
      if (run->runs > 1) paths += fmt::format(" ({} runs)", run->runs);
      Print("{}: {}", side, paths);
      for (const std::string& note : run->notes) Print("   Note: {}.", Printable(note));
    }
    if (comparison_.work_by_steps)
      Print(
          "The amount of work is that of the steps named {}: too few kernels are in both runs, or those that "
          "are don't agree about it.",
          Printable(comparison_.a.step_label));
    if (comparison_.work.has_value() && std::abs(*comparison_.work - 1) > 0.005)
      Print("B did {:.3g} times A's work, by {}; figures of B are divided by that.", *comparison_.work,
            comparison_.work_by_steps ? "its steps" : "the launches of its kernels");
  }

  void Times() {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kParts = {{
        {"span", "first to last event"},
        {"compute", "computing"},
        {"communication", "only communicating"},
        {"copies", "only copying"},
        {"graphs", "graphs traced as a whole"},
        {"idle_host", "idle: nothing launched"},
        {"idle_other", "idle: other"},
    }};
    Print("\nTime of {}{}",
          comparison_.a.ranks == 1 && comparison_.b.ranks == 1 ? "the GPU" : "a GPU, mean of all ranks",
          comparison_.a.runs + comparison_.b.runs > 2 ? ", mean of all runs" : "");
    Print("{:>13} {:>12} {:>12}", "difference", "A", "B");
    for (const Line& part : comparison_.times) {
      if (part.a_ns == 0 && part.b_ns == 0) continue;
      const auto* const words =
          std::ranges::find(kParts, part.name, &std::pair<std::string_view, std::string_view>::first);
      Print("{:>13} {:>12} {:>12}  {}", Difference(part.more_ns()), Time(part.a_ns), Time(part.b_ns),
            words->second);
    }
  }

  void Kernels(std::string_view title, const std::vector<KernelLine>& lines) {
    if (lines.empty()) return;
    Print("\n{}", title);
    Print("{:>13} {:>12} {:>12} {:>9} {:>9} {:>11}  {}", "difference", "A", "B", "count A", "count B", "each",
          "name");
    const size_t shown = std::min(lines.size(), kKernelsShown);
    for (const KernelLine& kernel : std::span(lines).first(shown)) {
      const Line& line = kernel.line;
      std::string duration = "–";
      if (kernel.duration.has_value())
        duration = (kernel.duration->ratio > 1 ? "+" : "") + Percent(kernel.duration->ratio);
      Print("{:>13} {:>12} {:>12} {:>9.0f} {:>9.0f} {:>10}{}  {}", Difference(line.more_ns()),
            Time(line.a_ns), Time(line.b_ns), line.count_a, line.count_b, duration,
            kernel.change == Change::kSlower || kernel.change == Change::kFaster ? "*" : " ",
            shown_(line.name));
    }
    More(lines.size(), shown);
    Print("* significant; each: one of equal shape, by the mean of logarithms");
  }

  void Others(std::string_view title, const std::vector<Line>& lines) {
    if (lines.empty()) return;
    Print("\n{}", title);
    Print("{:>13} {:>12} {:>12} {:>9} {:>9}  {}", "difference", "A", "B", "count A", "count B", "name");
    const size_t shown = std::min(lines.size(), kOthersShown);
    for (const Line& line : std::span(lines).first(shown))
      Print("{:>13} {:>12} {:>12} {:>9.0f} {:>9.0f}  {}", Difference(line.more_ns()), Time(line.a_ns),
            Time(line.b_ns), line.count_a, line.count_b, shown_(line.name));
    More(lines.size(), shown);
  }

  // "… > aten::linear > aten::addmm > kernel".
  static std::string Inner(const StackLine& line) {
    const size_t left_out = line.frames.size() - std::min(line.frames.size(), kFramesShown);
    std::string text = left_out > 0 ? "…" : "";
    for (const std::string& frame : std::span(line.frames).subspan(left_out))
      text += (text.empty() ? "" : " > ") + Shorten(Printable(frame), kMaxFrame);
    return text.empty() ? "(no stack)" : text;
  }

  void StackLines(std::string_view title, std::span<const StackLine> lines) {
    if (lines.empty()) return;
    Print("\n{}", title);
    Print("{:>13} {:>12} {:>12}  {}", "difference", "A", "B", "name");
    for (const StackLine& line : lines)
      Print("{:>13} {:>12} {:>12}  {}", Difference(line.more_ns()), Time(line.a_ns), Time(line.b_ns),
            Inner(line));
  }

  void Stacks(const StackDiff& diff) {
    const bool gpu = diff.type() == model::ProfileType::kGpu;
    const std::vector<StackLine> operators = diff.Operators();
    StackLines("GPU time by operator", std::span(operators).first(std::min(operators.size(), kKernelsShown)));
    More(operators.size(), std::min(operators.size(), kKernelsShown));
    const std::vector<StackLine> changes = diff.Changes(kStacksShown);
    StackLines(
        gpu ? "GPU time by stack, what grew and shrank most" : "CPU time by stack, what grew and shrank most",
        changes);
  }

  void More(size_t all, size_t shown) {
    if (all > shown) Print("… and {} more", all - shown);
  }

  const Comparison& comparison_;
  model::ShortNames shown_;
  std::string out_;
};

}  // namespace

std::vector<std::string> SentencesOf(const Comparison& comparison) {
  return TextWriter(comparison).Sentences();
}

std::string ToText(const Comparison& comparison) { return TextWriter(comparison).Write(); }

}  // namespace gpusonde::compare
