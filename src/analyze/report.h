// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report/kernel_lines.h"
#include "analyze/report/notes.h"
#include "analyze/report/rank_lines.h"

// The result of an analysis, as docs/analyze-json.md describes it. Times are ns.
namespace gpusonde::analyze {

struct TraceLine {
  std::string path;
  std::string_view format;
  int64_t events = 0;
  int64_t kernels = 0;
  int64_t kernel_ns = 0;
  int64_t memcpys = 0;
  int64_t memcpy_bytes = 0;
  int64_t memcpy_ns = 0;
  int64_t memsets = 0;
  int64_t api_calls = 0;
  int64_t ranges = 0;
  int64_t dropped = 0;
  int64_t duration_ns = 0;
  int64_t graphs = 0;  // launches of CUDA graphs that were traced as a whole
  int64_t graph_ns = 0;
};

// What may be done about a well-known problem (advice/).
struct AdviceLine {
  // A time by the clock of a trace, in ns.
  struct Place {
    size_t trace = 0;
    int64_t rank = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  std::string_view rule;
  std::optional<int64_t> rank;  // the one that loses most; empty if the figures are means over all ranks
  int64_t ranks = 0;            // how many have the problem
  int64_t gain_ns = 0;          // what that rank may gain at most
  int64_t span_ns = 0;          // of that rank
  std::string finding;          // what was found, about that rank; no names
  std::string action;
  std::string gain_basis;          // how the gain was computed
  std::vector<std::string> names;  // kernels or calls that it is about, at most 3
  std::vector<Place> places;       // where it is to be seen, at most 3
};

// How the clocks of several traces are aligned.
enum class Alignment : uint8_t {
  kNone,         // not at all: each clock is trusted
  kCollectives,  // all ranks leave a collective together
};

struct Report {
  Alignment alignment = Alignment::kNone;
  std::vector<TraceLine> traces;
  std::vector<DurationLine> kernels;
  std::vector<DistributionLine> distributions;  // of the first 20 kernels
  std::vector<DurationLine> graphs;  // launches of CUDA graphs that were traced as a whole, by graph
  std::vector<TransferLine> memcpys;
  std::vector<TransferLine> memsets;
  std::vector<DurationLine> api_calls;
  std::vector<RankLine> ranks;
  std::vector<VariabilityLine> variability;
  std::vector<WindowLine> windows;
  std::vector<CopyEffectLine> copy_effects;
  std::vector<SlowRankLine> slow_ranks;
  std::vector<CollectiveLine> collectives;
  std::vector<BandwidthLine> bandwidth;
  std::vector<CommunicationLine> communication;
  std::vector<KernelMetricLine> kernel_metrics;
  std::vector<RankKernelsLine> rank_kernels;
  std::vector<StepsLine> steps;
  std::vector<SyncsLine> syncs;
  std::vector<ConcurrencyLine> concurrency;
  std::vector<LaunchPatternLine> launch_patterns;
  std::vector<ClockLine> clocks;
  std::vector<OperatorLine> operators;           // with Options::operators
  std::vector<CriticalPathLine> critical_paths;  // with Options::critical_path
  std::vector<WavesLine> waves;                  // with Options::waves
  std::vector<SequencesLine> sequences;          // with Options::sequences
  std::vector<AdviceLine> advice;
  std::vector<Note> notes;
};

// One line of JSON with a line break, keys in the order of docs/analyze-json.md.
std::string ToJson(const Report& report);
// For terminals: the most important findings as sentences, then tables, which are at most `width` columns
// wide; what has no room is left out.
inline constexpr size_t kTextWidth = 100;
std::string ToText(const Report& report, size_t width = kTextWidth);
// A self-contained page of at most 3 MB, for browsers and printers: no script, and nothing is loaded.
std::string ToHtml(const Report& report);

// A note of the report as a sentence without a stop.
std::string SentenceOf(const Note& note, const Report& report);

}  // namespace gpusonde::analyze
