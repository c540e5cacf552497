// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/run.h"
#include "compare/stack_diff.h"

namespace gpusonde::compare {

struct Options {
  // Two runs of one program differ by this much for reasons outside of it: clocks, temperature, where memory
  // lies. Smaller changes of durations and of the pace aren't reported. Chosen, not measured on real GPUs.
  double min_change = 0.01;
};

// How many times as long something takes in B as in A.
struct Ratio {
  double ratio = 1;
  double low = 1;  // 95 % interval
  double high = 1;
  // With one run of each side, of a kernel: the 95 % interval of its change apart from what all kernels
  // changed together. That is what is tested: it may be sure though `low` and `high` aren't.
  struct Apart {
    double low = 1;
    double high = 1;
  };
  std::optional<Apart> apart;
  double p = 1;  // of so large a change if the true one is at most Options::min_change
  // Changes by this factor or more, up or down, would be found in 95 of 100 pairs of runs, if it were the
  // only one that is tested.
  double detectable = 1;
  // How much a run differs from others of its side, as a standard deviation; empty with less than three runs.
  std::optional<double> between_runs;
  bool significant = false;  // among all ratios that were tested
};

// Why a kernel is listed.
enum class Change : uint8_t {
  kNone,  // of durations; or none that is significant
  kSlower,
  kFaster,
  kMoreLaunches,  // than the amount of work explains
  kFewerLaunches,
  kOnlyInA,
  kOnlyInB,
};
std::string_view Name(Change change);  // as in the JSON: "slower", "more_launches"

// Kernels or copies of one name. Times and counts are means over runs; B's are divided by Comparison::work.
struct Line {
  std::string name;
  double count_a = 0;
  double count_b = 0;
  double a_ns = 0;
  double b_ns = 0;
  double more_ns() const { return b_ns - a_ns; }
};

struct KernelLine {
  Line line;
  bool communication = false;     // not judged by its durations, which depend on other ranks
  std::optional<Ratio> duration;  // of launches of equal shapes; empty if there are too few
  bool other_shapes = false;  // A and B launch it in different shapes only, so `duration` is of all launches
  Change change = Change::kNone;
  // What its durations alone cost: the time of B's launches minus what they would take in A.
  double slower_ns = 0;
};

// Runs before, A, and after, B. Times are means over ranks and runs.
struct Comparison {
  Run a, b;  // all runs of each side together
  // B's amount of work, as a multiple of A's: the ratio of launches, each kernel weighted by its time in A,
  // without those whose ratio is too far from the median. Empty if kernels don't agree about it; then B isn't
  // divided by anything, and the pace isn't known. If kernels don't agree, but both have steps of one name,
  // the ratio of these.
  std::optional<double> work;
  bool work_by_steps = false;
  std::optional<Ratio> pace;        // time for an equal amount of work
  std::optional<Ratio> duration;    // of all kernels that are in both, weighted by their time
  std::vector<Line> times;          // the parts of Times, without counts; they sum to the first, the span
  std::vector<KernelLine> kernels;  // the largest difference first, up or down
  std::vector<KernelLine> phases;   // annotated ranges, likewise; of time on the host, and they may nest
  std::vector<Line> kinds;          // all kernels by what they do (KindOfWork), likewise; not tested
  std::vector<Line> graphs, copies, calls;  // likewise
  // What amounts of each side were divided by; stacks are divided by the same, or if the amount of work is
  // not known, by what makes both runs equally long.
  double divisor_a = 1, divisor_b = 1;
  std::vector<StackDiff> stacks;  // added afterwards by AddProfile, and not tested

  // Adds the GPU or CPU time by stack of a run of either side.
  void AddProfile(const model::Profile& profile, bool is_b);
};

// Compares the runs of two sides, at least one each. Ratios are tested for being beyond 1 ± min_change, with
// a share of false ones among those reported of 5 % at most (Benjamini and Hochberg), over the pace, the
// durations of all kernels together and of each. With three runs or more, errors are the larger of the
// variation over time within runs (analyze::ErrorOfMean) and of that from run to run; with one each, the
// latter can't be known. Pure.
Comparison Compare(std::vector<Run> a, std::vector<Run> b, const Options& options);

// All names of kernels and calls, to be shortened together.
std::vector<std::string_view> NamesIn(const Comparison& comparison);

// For terminals. Names are shortened and escaped.
std::string ToText(const Comparison& comparison);
// Its sentences about what changed, one each; names likewise.
std::vector<std::string> SentencesOf(const Comparison& comparison);
// A self-contained page of at most 1 MB, and as much for each flame graph, like analyze::ToHtml.
std::string ToHtml(const Comparison& comparison);
// One line of JSON with a line break, as docs/compare.md describes it. With `most`, lists have so many
// entries at most, and "omitted" counts the others.
std::string ToJson(const Comparison& comparison, std::optional<size_t> most = std::nullopt);

}  // namespace gpusonde::compare
