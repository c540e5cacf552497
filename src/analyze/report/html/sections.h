// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "analyze/report.h"
#include "analyze/report/html/writer.h"
#include "model/short_names.h"

// The sections of the page. Each writes nothing if the report has nothing of it, and a bounded number of
// rows.
namespace gpusonde::analyze {

inline constexpr size_t kMaxRows = 20;

// What each rank did: computation, communication, copies, idle; and why it was idle.
void WriteRanks(HtmlWriter& html, const Report& report);
// How busy each rank was over time.
void WriteHeatMap(HtmlWriter& html, const Report& report);

// Typical steps of each rank, and the slowest.
void WriteSteps(HtmlWriter& html, const Report& report, const model::ShortNames& shown);

// What steps wait for.
void WriteCriticalPaths(HtmlWriter& html, const Report& report, const model::ShortNames& shown);

// Kernels by time, with the distributions of their durations.
void WriteKernels(HtmlWriter& html, const Report& report, const model::ShortNames& shown);
// GPU work by what launched it.
void WriteOperators(HtmlWriter& html, const Report& report, const model::ShortNames& shown);
void WriteWaves(HtmlWriter& html, const Report& report, const model::ShortNames& shown);
// Sequences of kernels that repeat.
void WriteSequences(HtmlWriter& html, const Report& report, const model::ShortNames& shown);
void WriteVariability(HtmlWriter& html, const Report& report, const model::ShortNames& shown);
void WriteCopyEffects(HtmlWriter& html, const Report& report, const model::ShortNames& shown);
// Slow ranks, unusual windows, collectives.
void WriteJob(HtmlWriter& html, const Report& report, const model::ShortNames& shown);
// Calls that wait for the GPU.
void WriteSyncs(HtmlWriter& html, const Report& report);
// What ran at the same time, and streams by themselves.
void WriteConcurrency(HtmlWriter& html, const Report& report);
// How threads launch kernels and graphs.
void WriteLaunchPatterns(HtmlWriter& html, const Report& report);
// Graphs, communication, copies, sets, calls, metrics.
void WriteOthers(HtmlWriter& html, const Report& report, const model::ShortNames& shown);

}  // namespace gpusonde::analyze
