// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/notes.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>

#include "analyze/name_table.h"
#include "analyze/report.h"
#include "analyze/report/quantities.h"
#include "analyze/report/sentences.h"
#include "base/counted.h"

namespace gpusonde::analyze {
namespace {

struct Wording {
  NoteKind kind;
  std::string_view name;
  std::string_view
      unit;  // of Note::count, for {counted}: "3 events"; {are}, {have} and {start} agree with it
  std::string_view sentence;
};

using enum NoteKind;
constexpr std::array<Wording, kNoteKinds> kWordings = {{
    {kBadTime, "bad_time", "event", "{counted} with an impossible time {are} left out"},
    {kNegativeDuration, "negative_duration", "event", "{counted} that end before they begin {are} left out"},
    {kWrongType, "wrong_type", "event", "{counted} with an invalid device or stream {are} left out"},
    {kMalformed, "malformed", "event", "{counted} that can't be parsed {are} left out"},
    {kNotCollected, "not_collected", "event",
     "{counted} whose times the profiler could not collect {are} left out"},
    {kBeginEnd, "begin_end", "event", "{counted} that begin without an end {are} left out"},
    {kTruncated, "truncated", "event",
     "it is truncated or still being written; the readable part was analysed"},
    {kUnreadableParts, "unreadable_parts", "part", "{counted} of it can't be read and {are} left out"},
    {kLeftOut, "left_out_ns", "ns",
     "it has no event of any kind for {time} ({when}): its clock jumped, nothing was recorded or the program "
     "did nothing at all; that time is left out of spans, idle times and steps"},
    {kNoEvents, "no_events_ns", "ns",
     "it has no event of any kind for {time} ({when}), which counts as idle time; if the program wasn't "
     "waiting, its clock jumped or nothing was recorded"},
    {kNotAligned, "not_aligned", "rank",
     "a rank has no collective in common with the first rank, so its clock is not aligned"},
    {kMetricsWithoutNumber, "metrics_without_number", "value", "{counted} of text metrics {are} left out"},
    {kMetricsBeyondBound, "metrics_beyond_bound", "value",
     "{counted} of metrics of too many kinds {are} left out"},
    {kNamesBeyondBound, "names_beyond_bound", "event",
     "{counted} {are} together in {other}, as there are more than 50,000 names"},
    {kSequencesBeyondBound, "sequences_beyond_bound", "occurrence",
     "{counted} of sequences of kernels {are} left out, as there are too many different ones"},
    {kSyncsBeyondBound, "syncs_beyond_bound", "call",
     "{counted} that wait for the GPU {are} left out, as 256 threads waited at the same time"},
    {kCommunicatorsUnknown, "communicators_unknown", "call",
     "it doesn't have the communicators of {counted} of NCCL, so their collectives are matched by name; it "
     "has them if exported with --include-blobs=true"},
    {kCommunicatorsBeyondBound, "communicators_beyond_bound", "call",
     "the communicators of {counted} of NCCL beyond the first 524,288 of a process {are} left out"},
    {kMessageSizesInvalid, "message_sizes_invalid", "collective",
     "the message sizes of {counted} {are} impossible, or of an unknown type of element"},
    {kMessageSizesBeyondBound, "message_sizes_beyond_bound", "collective",
     "the message sizes of {counted} after the first 262,144 {are} left out"},
    {kCollectivesLost, "collectives_lost", "collective",
     "NCCL's profiler plugin had no room for {counted}, which {are} missing"},
    {kCollectivesBeyondBound, "collectives_beyond_bound", "collective",
     "{counted} of a rank after its first 65,536 {are} left out where ranks are compared, and of bandwidths: "
     "who came last and what others waited is known of the first only"},
    {kNoOperators, "no_operators", "trace",
     "the trace has no GPU work launched from an operator, module or range"},
    {kNoSteps, "no_steps", "trace", "fewer than three consecutive ranges match --steps"},
    {kStepsBeyondBound, "steps_beyond_bound", "range",
     "of the ranges that repeat as steps do, the shortest {counted} {are} left out, as of a process the "
     "32,768 "
     "longest ranges are looked at; steps without them would be wrong, so there are none: --steps names "
     "others, "
     "or trace a shorter time"},
    {kNoCriticalPaths, "no_critical_paths", "trace",
     "it has no steps that launched GPU work, so there are no critical paths; --steps names the ranges that "
     "are steps"},
    {kGpuClockAhead, "gpu_clock_ahead_ns", "ns",
     "the GPU's clock is {time} {ahead} the CPU's, estimated by assuming zero latency for the fastest "
     "launch; "
     "times of calls are converted"},
    {kStartsBeforeLaunch, "starts_before_launch", "event",
     "{counted} of the GPU {start} before the calls that launch them: the clocks of GPU and CPU disagree, or "
     "several processes' launches have the same numbers; latencies, queue lengths and the causes of idle "
     "time "
     "are off"},
    {kSharedNumbers, "shared_numbers", "call",
     "{counted} {have} the number of another thread's, as if traces of several processes were merged: which "
     "of them launched what is a guess, so latencies, threads and causes of idle time may be wrong; analyse "
     "the trace of each process, together as several files"},
    {kNumbersTooLarge, "numbers_too_large", "event",
     "{counted} {have} a correlation id of 2^32 or more, with which a call isn't joined with what it "
     "launched; latencies, threads and causes of idle time lack them"},
    {kSampledCalls, "sampled_calls", "call",
     "its {counted} {are} a sample of the program's launches: API calls, latencies and causes of idle time "
     "are those of the sample, queues were longer, and how threads launch isn't known"},
    {kLaunchersUnknown, "launchers_unknown", "process",
     "its GPU work doesn't say which of {counted} launched it, so it isn't joined with calls: latencies, "
     "threads and causes of idle time are unknown, and the work of all counts as that of one process"},
}};

constexpr bool AreInOrder() {
  for (size_t i = 0; i < kWordings.size(); ++i)
    if (static_cast<size_t>(kWordings[i].kind) != i) return false;
  for (size_t i = 0; i < importers::kDroppedNames.size(); ++i)
    if (kWordings[i].name != importers::kDroppedNames[i]) return false;
  return true;
}
static_assert(AreInOrder());

const Wording& WordingOf(NoteKind kind) { return kWordings[static_cast<size_t>(kind)]; }

// When the times were that a note is about.
std::string WhenOf(const Note& note, const Report& report) {
  if (!note.time.has_value()) return "";
  const std::string place = FromTo(report.traces[note.trace], note.time->begin_ns, note.time->end_ns);
  return note.time->times == 1 ? place : fmt::format("{} times, the longest {}", note.time->times, place);
}

}  // namespace

std::string_view Name(NoteKind kind) { return WordingOf(kind).name; }

std::string SentenceOf(const Note& note, const Report& report) {
  const Wording& wording = WordingOf(note.kind);
  const bool one = note.count == 1;
  return fmt::format(fmt::runtime(wording.sentence), fmt::arg("counted", Counted(note.count, wording.unit)),
                     fmt::arg("are", one ? "is" : "are"), fmt::arg("have", one ? "has" : "have"),
                     fmt::arg("start", one ? "starts" : "start"), fmt::arg("other", NameTable::kOther),
                     fmt::arg("time", Time(std::abs(note.count))), fmt::arg("when", WhenOf(note, report)),
                     fmt::arg("ahead", note.count < 0 ? "behind" : "ahead of"));
}

}  // namespace gpusonde::analyze
