// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <utility>

#include "analyze/stats/inference.h"
#include "analyze/steps/step_candidates.h"
#include "compare/between_runs.h"
#include "compare/change_of_mean.h"
#include "compare/kinds_of_work.h"
#include "compare/single_runs.h"
#include "compare/work.h"

namespace gpusonde::compare {
namespace {

// Fewer launches, or fewer shapes with a launch or two each, say too little about a kernel's durations.
constexpr int64_t kMinLaunches = 8;
// A trace begins and ends in the middle of a step, so launches of about this many steps of a rank are extra
// or missing.
constexpr double kCutSteps = 1.5;
// The number of steps isn't known; kernels with this share of all time aren't launched less often than that.
constexpr double kShareInEveryStep = 0.9;
// The change of all kernels together is known if launches with this share of B's time were compared.
constexpr double kMinTested = 0.2;

double ToDouble(int64_t value) { return static_cast<double>(value); }

// What amounts of each side are divided by: A's runs, and those of B as multiples of a run of A's work.
struct Divisors {
  double a = 1, b = 1;
};

// What is compared of all kernels, copies or calls.
using Amounts = std::map<std::string, Amount>;
std::vector<Line> LinesOf(const Amounts& a, const Amounts& b, const Divisors& by) {
  std::map<std::string, Line> lines;
  for (const auto& [name, amount] : a) {
    lines[name].count_a = ToDouble(amount.count) / by.a;
    lines[name].a_ns = ToDouble(amount.total_ns) / by.a;
  }
  for (const auto& [name, amount] : b) {
    lines[name].count_b = ToDouble(amount.count) / by.b;
    lines[name].b_ns = ToDouble(amount.total_ns) / by.b;
  }
  std::vector<Line> sorted;
  for (auto& [name, line] : lines) {
    line.name = name;
    sorted.push_back(std::move(line));
  }
  std::ranges::stable_sort(sorted, std::greater<>(),
                           [](const Line& line) { return std::abs(line.more_ns()); });
  return sorted;
}

// Shapes with too few launches to know the error of each: how much their changes differ from each other tells
// how well the change of all is known (the variance of a ratio: Cochran 1977, section 6.3).
class FewLaunches {
 public:
  void Add(double taken_ns, double difference) {
    changes_.push_back({.taken_ns = taken_ns, .before_ns = taken_ns * std::exp(-difference)});
  }

  // With several runs, the variation between these tells the error, of any number of shapes. Launches that
  // took no time by a clock of whole microseconds have no ratio.
  void AddTo(std::initializer_list<ChangeOfMean*> changes, bool several_runs) const {
    if (changes_.empty() || (changes_.size() < kMinLaunches && !several_runs)) return;
    double taken_ns = 0, before_ns = 0, squares = 0;
    for (const Times& times : changes_) {
      taken_ns += times.taken_ns;
      before_ns += times.before_ns;
    }
    if (taken_ns <= 0) return;
    const double ratio = taken_ns / before_ns;
    for (const Times& times : changes_) {
      const double residual = times.taken_ns - ratio * times.before_ns;
      squares += residual * residual;
    }
    const auto count = static_cast<double>(changes_.size());
    analyze::MeanError error;
    if (count > 1)
      error = {.variance = squares / (taken_ns * taken_ns) * count / (count - 1), .freedom = count - 1};
    for (ChangeOfMean* const change : changes) change->Add(taken_ns, std::log(ratio), {}, error);
  }

 private:
  struct Times {
    double taken_ns, before_ns;
  };
  std::vector<Times> changes_;
};

// All launches of a kernel in shapes that are launched often enough.
KernelGroup AllShapes(const Kernel& kernel) {
  KernelGroup all;
  for (const auto& [shape, group] : kernel.groups)
    if (group.error.freedom > 0 && group.count >= kMinLaunches) all.Merge(group);
  return all;
}

// Compares launches of equal shapes, and adds them to the change of all kernels.
void CompareDurations(const Kernel& a, const Kernel& b, const Divisors& by, bool several_runs,
                      KernelLine& line, ChangeOfMean& change, ChangeOfMean& all) {
  FewLaunches few;
  for (const auto& [shape, group] : b.groups) {
    const auto before = a.groups.find(shape);
    if (before == a.groups.end()) continue;
    const KernelGroup& other = before->second;
    const double mean_before = other.total_ns / ToDouble(other.count);
    line.slower_ns += (group.total_ns - mean_before * ToDouble(group.count)) / by.b;
    const double difference = group.log_mean - other.log_mean;
    const bool known = group.error.freedom > 0 && other.error.freedom > 0;
    if (known && std::min(group.count, other.count) >= kMinLaunches)
      for (ChangeOfMean* const mean : {&change, &all})
        mean->Add(group.total_ns, difference, other.error, group.error);
    else
      few.Add(group.total_ns, difference);
  }
  few.AddTo({&change, &all}, several_runs);
  if (!change.empty()) return;
  const KernelGroup before = AllShapes(a), after = AllShapes(b);
  // Of launches that took no time by a clock of whole microseconds there is nothing to tell.
  if (before.total_ns <= 0 || after.total_ns <= 0) return;
  change.Add(1, after.log_mean - before.log_mean, before.error, after.error);
  line.other_shapes = true;
}

Amounts KindsOf(const Run& run) {
  Amounts kinds;
  for (const auto& [name, kernel] : run.kernels)
    kinds[std::string(KindOfWork(name, kernel.communication))].Merge(kernel.amount);
  return kinds;
}

// The number of steps of all ranks, at most.
double StepsOf(const std::vector<Line>& kernels) {
  std::vector<const Line*> order;
  double all = 0;
  for (const Line& kernel : kernels) {
    if (kernel.count_a == 0 || kernel.count_b == 0) continue;
    order.push_back(&kernel);
    all += kernel.a_ns;
  }
  std::ranges::sort(order, std::greater<>(), [](const Line* kernel) { return kernel->count_a; });
  double above = 0;
  for (const Line* const kernel : order) {
    above += kernel->a_ns;
    if (above >= kShareInEveryStep * all) return std::min(kernel->count_a, kernel->count_b);
  }
  return 0;
}

// Whether launches are more or fewer than the amount of work explains. `tolerance` is the share of a kernel's
// launches that may be missing or extra.
Change ChangeOfCount(const Line& line, double tolerance) {
  if (line.count_b == 0) return Change::kOnlyInA;
  if (line.count_a == 0) return Change::kOnlyInB;
  if (std::abs(line.count_b - line.count_a) <= tolerance * std::max(line.count_a, line.count_b))
    return Change::kNone;
  return line.count_b > line.count_a ? Change::kMoreLaunches : Change::kFewerLaunches;
}

// The relative difference of launches that their variation from run to run explains; 0 if that isn't known.
double VariationOfRunsOf(const Side& a, const Side& b, Kernels Run::* which, const std::string& name) {
  VariationOfRuns variation;
  for (const Side* const side : {&a, &b}) {
    std::vector<VariationOfRuns::Value> counts;
    for (const Run& run : side->runs)
      if (const auto kernel = (run.*which).find(name); kernel != (run.*which).end())
        counts.push_back({std::log(ToDouble(kernel->second.amount.count) / run.work), 1});
    variation.AddSide(counts);
  }
  const analyze::MeanError error = variation.Error();
  if (error.freedom == 0) return 0;
  return StudentQuantile(kTailOfCounts, error.freedom) * std::sqrt(error.variance);
}

// Compares kernels or phases, and returns the change of all together.
std::optional<Ratio> CompareNamed(const Side& side_a, const Side& side_b, Kernels Run::* which,
                                  const Divisors& by, const Options& options, bool work_is_known,
                                  std::vector<KernelLine>& compared) {
  const Kernels &all_a = side_a.together.*which, &all_b = side_b.together.*which;
  const int64_t runs_a = side_a.together.runs, runs_b = side_b.together.runs;
  Amounts a, b;
  for (const auto& [name, kernel] : all_a) a[name] = kernel.amount;
  for (const auto& [name, kernel] : all_b) b[name] = kernel.amount;
  std::vector<Line> lines = LinesOf(a, b, by);
  const double steps = StepsOf(lines);
  const double cut_steps = kCutSteps * ToDouble(std::max(side_a.together.ranks, side_b.together.ranks));
  // Without an amount of work, other counts say nothing.
  const double cut = work_is_known && steps > 0 ? cut_steps / steps : 1;
  const bool several = runs_a + runs_b > 2;
  DurationsOfRuns durations(side_a, side_b, which);
  ChangeOfMean all;
  std::vector<std::pair<size_t, ChangeOfMean>> changes;  // of `compared`, by place
  for (Line& line : lines) {
    KernelLine kernel{.line = std::move(line)};
    const std::string& name = kernel.line.name;
    const auto before = all_a.find(name);
    const auto after = all_b.find(name);
    const bool in_a = before != all_a.end(), in_b = after != all_b.end();
    kernel.communication = (in_a ? before : after)->second.communication;
    if (in_a && in_b && !kernel.communication) {
      ChangeOfMean change;
      CompareDurations(before->second, after->second, by, several, kernel, change, all);
      changes.emplace_back(compared.size(), change);
    }
    const double variation = in_a && in_b
                                 ? std::max(VariationOf(before->second.launches, after->second.launches),
                                            VariationOfRunsOf(side_a, side_b, which, name))
                                 : 0;
    kernel.change = ChangeOfCount(kernel.line, std::max({kMinCountChange, cut, variation}));
    // A kernel that only some runs of a side have, such as one that a library chooses by measuring, is no
    // change.
    if (in_a != in_b && (in_a ? before->second.runs < runs_a : after->second.runs < runs_b))
      kernel.change = Change::kNone;
    compared.push_back(std::move(kernel));
  }
  SingleRuns single;
  TypicalVariance typical;
  std::vector<VariationOfRuns> variations;
  for (const auto& [place, change] : changes) {
    const KernelLine& kernel = compared[place];
    variations.push_back(durations.OfKernel(kernel.line.name, kernel.other_shapes));
    if (!several && !change.empty()) single.Add(change.difference(), change.Within().variance);
    if (const auto deviation = variations.back().Deviation(); deviation.has_value())
      typical.Add(*deviation * *deviation, variations.back().freedom());
  }
  single.Finish();
  typical.Finish();
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto& [place, change] = changes[i];
    KernelLine& kernel = compared[place];
    kernel.duration = change.Finish(options.min_change, {.several = several,
                                                         .variation = variations[i],
                                                         .typical = typical,
                                                         .shift = single.shift(),
                                                         .of_all = SingleRuns::OfAll(),
                                                         .of_each = single.of_each()});
  }
  double all_ns = 0;
  for (const auto& [name, kernel] : all_b)
    if (!kernel.communication) all_ns += ToDouble(kernel.amount.total_ns);
  if (all.taken_ns() < kMinTested * all_ns) return std::nullopt;
  return all.Finish(options.min_change, {.several = several,
                                         .variation = durations.OfAll(),
                                         .typical = {},
                                         .shift = 0,
                                         .of_all = {},
                                         .of_each = SingleRuns::OfAll()});
}

using WorkMeasure = std::optional<double> (*)(const Run& a, const Run& b);

// The work of B's runs together as a multiple of A's, and Run::work; empty if any isn't known.
std::optional<double> MeasureWork(Side& a, Side& b, WorkMeasure measure) {
  const std::optional<double> together = measure(a.together, b.together);
  if (!together.has_value()) return std::nullopt;
  for (Side* const side : {&a, &b})
    for (Run& run : side->runs) {
      const std::optional<double> work = measure(a.together, run);
      if (!work.has_value()) return std::nullopt;
      run.work = *work;
    }
  return together;
}

// The variation of the time for an equal amount of work.
VariationOfRuns PaceOfRuns(const Side& a, const Side& b) {
  VariationOfRuns variation;
  for (const Side* const side : {&a, &b}) {
    std::vector<VariationOfRuns::Value> runs;
    for (const Run& run : side->runs) runs.push_back({std::log(run.times.span_ns / run.work), run.work});
    variation.AddSide(runs);
  }
  return variation;
}

void ComparePace(const Side& a, const Side& b, const Options& options, Comparison& comparison) {
  const analyze::MeanError &before = a.together.progress, &after = b.together.progress;
  const bool several = a.runs.size() + b.runs.size() > 2;
  if (!several && (before.freedom == 0 || after.freedom == 0)) return;
  ChangeOfMean change;
  change.Add(1, std::log(b.together.times.span_ns / *comparison.work / a.together.times.span_ns), before,
             after);
  comparison.pace = change.Finish(options.min_change, {.several = several,
                                                       .variation = PaceOfRuns(a, b),
                                                       .typical = {},
                                                       .shift = 0,
                                                       .of_all = {},
                                                       .of_each = SingleRuns::OfAll()});
}

// Marks what is significant among everything that was tested.
void MarkSignificant(Comparison& comparison) {
  std::vector<Ratio*> tested;
  for (std::optional<Ratio>* const ratio : {&comparison.pace, &comparison.duration})
    if (ratio->has_value()) tested.push_back(&**ratio);
  for (std::vector<KernelLine>* const lines : {&comparison.kernels, &comparison.phases})
    for (KernelLine& kernel : *lines)
      if (kernel.duration.has_value()) tested.push_back(&*kernel.duration);
  std::vector<double> p;
  for (const Ratio* const ratio : tested) p.push_back(ratio->p);
  const std::vector<bool> significant = analyze::Significant(p);
  for (size_t i = 0; i < tested.size(); ++i) tested[i]->significant = significant[i];
  for (std::vector<KernelLine>* const lines : {&comparison.kernels, &comparison.phases})
    for (KernelLine& kernel : *lines)
      if (kernel.duration.has_value() && kernel.duration->significant && kernel.change == Change::kNone)
        kernel.change = kernel.duration->ratio > 1 ? Change::kSlower : Change::kFaster;
}

std::vector<Line> CompareTimes(const Times& a, const Times& b, double work) {
  constexpr std::array<std::pair<const char*, double Times::*>, 7> kTimes = {{
      {"span", &Times::span_ns},
      {"compute", &Times::compute_ns},
      {"communication", &Times::communication_ns},
      {"copies", &Times::copy_ns},
      {"graphs", &Times::graph_ns},
      {"idle_host", &Times::idle_host_ns},
      {"idle_other", &Times::idle_other_ns},
  }};
  std::vector<Line> lines;
  for (const auto& [name, member] : kTimes)
    lines.push_back({.name = name, .a_ns = a.*member, .b_ns = b.*member / work});
  return lines;
}

}  // namespace

std::string_view Name(Change change) {
  constexpr std::string_view kNames[] = {"none",           "slower",    "faster",   "more_launches",
                                         "fewer_launches", "only_in_a", "only_in_b"};
  return kNames[static_cast<size_t>(change)];
}

void Comparison::AddProfile(const model::Profile& profile, bool is_b) {
  auto diff = std::ranges::find(stacks, profile.type, &StackDiff::type);
  if (diff == stacks.end()) diff = stacks.insert(stacks.end(), StackDiff(profile.type));
  diff->Add(profile, is_b, is_b ? divisor_b : divisor_a);
}

Comparison Compare(std::vector<Run> runs_a, std::vector<Run> runs_b, const Options& options) {
  Side a(std::move(runs_a)), b(std::move(runs_b));
  Comparison comparison;
  const double count_a = ToDouble(a.together.runs), count_b = ToDouble(b.together.runs);
  std::array<WorkMeasure, 2> measures = {WorkOf, WorkBySteps};
  if (StepsAreBetter(a.together, b.together)) std::ranges::reverse(measures);
  std::optional<double> together = MeasureWork(a, b, measures[0]);
  comparison.work_by_steps = together.has_value() && measures[0] == WorkBySteps;
  if (!together.has_value()) {
    together = MeasureWork(a, b, measures[1]);
    comparison.work_by_steps = together.has_value() && measures[1] == WorkBySteps;
  }
  if (together.has_value()) comparison.work = *together * count_a / count_b;  // of a run
  const double work = comparison.work.value_or(1);
  const Divisors by{.a = count_a, .b = work * count_b};
  if (comparison.work.has_value()) ComparePace(a, b, options, comparison);
  comparison.divisor_a = by.a;
  comparison.divisor_b =
      comparison.work.has_value() ? by.b : count_b * b.together.times.span_ns / a.together.times.span_ns;
  comparison.times = CompareTimes(a.together.times, b.together.times, work);
  const bool known = comparison.work.has_value();
  comparison.duration = CompareNamed(a, b, &Run::kernels, by, options, known, comparison.kernels);
  if (a.together.all_phases && b.together.all_phases)
    CompareNamed(a, b, &Run::phases, by, options, known, comparison.phases);
  MarkSignificant(comparison);
  comparison.kinds = LinesOf(KindsOf(a.together), KindsOf(b.together), by);
  comparison.graphs = LinesOf(a.together.graphs, b.together.graphs, by);
  comparison.copies = LinesOf(a.together.copies, b.together.copies, by);
  comparison.calls = LinesOf(a.together.calls, b.together.calls, by);
  comparison.a = std::move(a.together);
  comparison.b = std::move(b.together);
  for (Run* const run : {&comparison.a, &comparison.b})
    if (!run->all_phases)
      run->notes.push_back(
          fmt::format("phases aren't compared, as a process has more than {} ranges and not all were kept",
                      analyze::StepCandidates::kMaxRanges));
  return comparison;
}

std::vector<std::string_view> NamesIn(const Comparison& comparison) {
  std::vector<std::string_view> names;
  for (const KernelLine& kernel : comparison.kernels) names.emplace_back(kernel.line.name);
  for (const KernelLine& phase : comparison.phases) names.emplace_back(phase.line.name);
  for (const Line& kind : comparison.kinds) names.emplace_back(kind.name);
  for (const Line& call : comparison.calls) names.emplace_back(call.name);
  return names;
}

}  // namespace gpusonde::compare
