// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report.h"
#include "model/short_names.h"

namespace gpusonde::analyze {

struct Finding {
  std::string text;
  int64_t cost_ns = 0;  // time that it cost, of one rank or summed over kernels; 0: unknown
};

// What a report says in sentences, for every format that people read. Names are escaped for terminals.
struct ReportSentences {
  std::vector<std::string> overview;  // how busy the ranks were, and the kernel with the most time
  std::vector<Finding> findings;      // the largest cost first
};

// A piece of advice in sentences, names shortened.
struct AdviceSentences {
  std::string finding;
  std::string gain;      // with how it was computed
  std::string evidence;  // names, and times as FromTo writes them; may be empty
};

AdviceSentences SentencesOf(const AdviceLine& advice, const Report& report, const model::ShortNames& shown);

ReportSentences SentencesOf(const Report& report, const model::ShortNames& shown);

// "from 12 to 15 µs": from one time of a trace's own clock to another, as the trace writes them; of a
// recording the times of day (UTC).
std::string FromTo(const TraceLine& trace, int64_t begin_ns, int64_t end_ns);

// "rank0.json from 12 to 15 µs (3 µs)": times as FromTo writes them.
std::string PlaceText(const AdviceLine::Place& place, const Report& report);

// The names of kernels and calls, for model::ShortNames.
std::vector<std::string_view> NamesIn(const Report& report);

// How strongly a metric correlates with the durations of launches of one shape, 0 to 1.
double Strength(const KernelMetricLine& line);

}  // namespace gpusonde::analyze
