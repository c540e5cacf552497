// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
};

// Durations of one kind of thing; what is beside the count is 0 when there were none.
struct DurationLine {
  std::string name;
  int64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  int64_t mean_ns = 0;
  int64_t stddev_ns = 0;
  int64_t p50_ns = 0;
  int64_t p90_ns = 0;
  int64_t p99_ns = 0;
  int64_t outliers = 0;
};

struct TransferLine {
  std::string_view kind;  // of copies; empty for sets
  std::string_view source;
  std::string_view target;
  int64_t bytes = 0;
  DurationLine durations;
};

// Time without work on a device, by what ended it (timeline/rank_timeline.h).
struct IdleLine {
  int64_t host_ns = 0;
  int64_t back_to_back_ns = 0;
  int64_t device_ns = 0;
  int64_t unknown_ns = 0;
};

// A process on a device: what the device did over time.
struct RankLine {
  int64_t rank = 0;  // of the job: what the trace says, else the place in this list
  size_t trace = 0;
  int64_t process = 0;  // 0 where the format doesn't say
  int32_t device = 0;
  int64_t events = 0;
  int64_t span_ns = 0;  // from the first start to the last end
  int64_t busy_ns = 0;
  int64_t idle_ns = 0;
  int64_t compute_ns = 0;
  int64_t comm_ns = 0;
  int64_t exposed_comm_ns = 0;  // with no computation beside it
  int64_t overlap_ns = 0;       // of communication with computation
  int64_t transfer_ns = 0;      // copies and sets
  int64_t transfer_overlap_ns = 0;
  IdleLine idle;  // of the device; sums to idle_ns
  IdleLine gaps;  // of each stream, summed
  DurationLine launch_latency;
  DurationLine queue_delay;
  int64_t queue_max = 0;
  double queue_mean = 0;       // over its changes
  double queue_time_mean = 0;  // over time
};

// What a reader should know about a trace before trusting its numbers.
struct Note {
  size_t trace = 0;
  std::string_view kind;  // truncated, or why events were dropped
  int64_t count = 0;
};

struct Report {
  std::vector<TraceLine> traces;
  std::vector<DurationLine> kernels;
  std::vector<TransferLine> memcpys;
  std::vector<TransferLine> memsets;
  std::vector<DurationLine> api_calls;
  std::vector<RankLine> ranks;
  std::vector<Note> notes;
};

// One line of JSON with a line break, keys in the order of docs/analyze-json.md.
std::string ToJson(const Report& report);
// For people: what matters first, in sentences, then tables.
std::string ToText(const Report& report);

}  // namespace gpusonde::analyze
