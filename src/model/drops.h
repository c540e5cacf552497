// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "model/table.h"

namespace gpusonde::model {

// Why data was lost or is incomplete; kDropReasons has what each means. Every dropped record is counted under
// one of these reasons.
enum class DropReason : uint8_t {
  kRingFull,
  kSidebandLost,
  kSidebandMalformed,
  kNoUserStack,
  kStackTruncated,
  kTooManyProcesses,
  kOffCpuLost,
  kUnwindNotReady,
  kUnwindNoRule,
  kUnwindUnsupported,
  kUnwindUnreadable,
  kUnknownMapping,
  kNoSymbol,
  kJitUnnamed,
  kJitCodeOmitted,
  kUnreadableBinary,
  kNoDebugInfo,
  kDebugInfoFailed,
  kLinesLate,
  kPythonNotReady,
  kPythonStackLost,
  kPythonUnnamed,
  kSpoolFailed,
  kServerRefused,
  kGpuRecordsDropped,
  kGpuMessagesLost,
  kGpuMalformed,
  kGpuUntimed,
  kGpuRecordsSummed,
  kGpuNameLost,
  kGpuTotalsLost,
  kGpuRangesDropped,
  kGpuWorkUnreported,
  kGpuProgramUnrecorded,
  kGpuReadingsFailed,
  kGpuReadingsAbsurd,
  kGpuReadingsLost,
  kSignalsLost,
  kTraceEventsDropped,
  kTraceEventsUnused,
};

struct DropInfo {
  DropReason reason;
  bool lost;                 // data is missing; else it is all there, with less detail than it could have
  std::string_view name;     // as stored and exported
  std::string_view meaning;  // one sentence for a person
};

inline constexpr std::array kDropReasons = {
    DropInfo{DropReason::kRingFull, true, "ring_full", "Samples lost because the kernel's buffer was full."},
    DropInfo{DropReason::kSidebandLost, true, "sideband_lost",
             "Process and mapping events lost because the kernel's buffer was full."},
    DropInfo{DropReason::kSidebandMalformed, true, "sideband_malformed",
             "Process and mapping events that did not parse."},
    DropInfo{DropReason::kNoUserStack, false, "no_user_stack", "Samples whose user stack could not be read."},
    DropInfo{DropReason::kStackTruncated, true, "stack_truncated", "Stacks cut at 127 frames."},
    DropInfo{DropReason::kTooManyProcesses, true, "too_many_processes",
             "Processes that were not sampled because too many were running at once."},
    DropInfo{DropReason::kOffCpuLost, true, "off_cpu_lost",
             "Waits of threads that were not recorded because too many waited at once."},
    DropInfo{DropReason::kUnwindNotReady, false, "unwind_not_ready",
             "Stacks unwound by frame pointers because the program's unwind tables were not loaded yet."},
    DropInfo{DropReason::kUnwindNoRule, false, "unwind_no_rule",
             "Stacks that break off in code without unwind tables and frame pointers."},
    DropInfo{DropReason::kUnwindUnsupported, false, "unwind_unsupported",
             "Stacks that break off at an unsupported unwind rule."},
    DropInfo{DropReason::kUnwindUnreadable, false, "unwind_unreadable",
             "Stacks that break off at memory that could not be read."},
    DropInfo{DropReason::kUnknownMapping, false, "unknown_mapping",
             "Frames at addresses outside all known files."},
    DropInfo{DropReason::kNoSymbol, false, "no_symbol",
             "Frames in files whose symbol tables don't name them."},
    DropInfo{DropReason::kJitUnnamed, false, "jit_unnamed",
             "Frames in code made at run time that no perf map or jitdump names (Node.js writes one with "
             "--perf-basic-prof)."},
    DropInfo{DropReason::kJitCodeOmitted, false, "jit_code_omitted",
             "Programs whose perf map or jitdump was not read to its end, to keep memory bounded."},
    DropInfo{DropReason::kUnreadableBinary, false, "unreadable_binary",
             "Program files that could not be read for symbols."},
    DropInfo{DropReason::kNoDebugInfo, false, "no_debug_info",
             "Program files without debug information: no source lines or inlined functions."},
    DropInfo{DropReason::kDebugInfoFailed, false, "debug_info_failed",
             "Program files whose debug information could not be read."},
    DropInfo{DropReason::kLinesLate, false, "lines_late",
             "Frames whose source lines were not resolved before the recording ended."},
    DropInfo{DropReason::kPythonNotReady, false, "python_not_ready",
             "Stacks without Python frames because the program's interpreter was not found yet."},
    DropInfo{DropReason::kPythonStackLost, true, "python_stack_lost",
             "Python stacks that could not be read to the thread's first frame."},
    DropInfo{DropReason::kPythonUnnamed, false, "python_unnamed",
             "Python frames whose function was gone, or its memory unreadable, before its name was read."},
    DropInfo{DropReason::kSpoolFailed, true, "spool_failed", "Rows that could not be written to disk."},
    DropInfo{DropReason::kServerRefused, true, "server_refused",
             "Rows that the server refused: malformed, too large, or of a clock that was days wrong."},
    DropInfo{DropReason::kGpuRecordsDropped, true, "gpu_records_dropped",
             "GPU activity records that CUPTI dropped or had no buffer for."},
    DropInfo{DropReason::kGpuMessagesLost, true, "gpu_messages_lost",
             "Messages about GPU work lost on their way: a buffer was full, or a program sent too many."},
    DropInfo{DropReason::kGpuMalformed, true, "gpu_malformed", "Messages about GPU work that did not parse."},
    DropInfo{DropReason::kGpuUntimed, true, "gpu_untimed", "GPU activity without timestamps from CUPTI."},
    DropInfo{DropReason::kGpuRecordsSummed, false, "gpu_records_summed",
             "GPU activity records that did not arrive one by one; their time is in the totals."},
    DropInfo{DropReason::kGpuNameLost, false, "gpu_name_lost", "GPU kernels whose name is not known."},
    DropInfo{DropReason::kGpuTotalsLost, true, "gpu_totals_lost",
             "GPU activity records that had no room in the exact totals."},
    DropInfo{DropReason::kGpuRangesDropped, true, "gpu_ranges_dropped",
             "Annotated ranges that were nested too deep or too many at once."},
    DropInfo{DropReason::kGpuWorkUnreported, true, "gpu_work_unreported",
             "Calls whose GPU work was not reported because the program was killed or called _exit."},
    DropInfo{DropReason::kGpuProgramUnrecorded, true, "gpu_program_unheard",
             "Programs whose GPU work could not be recorded: they had closed gpusonde's socket."},
    DropInfo{DropReason::kGpuReadingsFailed, true, "gpu_readings_failed",
             "GPU metrics that the driver failed to read."},
    DropInfo{DropReason::kGpuReadingsAbsurd, true, "gpu_readings_absurd",
             "GPU metrics with impossible values."},
    DropInfo{DropReason::kGpuReadingsLost, true, "gpu_readings_lost",
             "GPU metrics dropped because they waited too long to be written."},
    DropInfo{DropReason::kSignalsLost, true, "signals_lost",
             "Slices of threads' time that were not counted because too many threads were busy."},
    DropInfo{DropReason::kTraceEventsDropped, true, "trace_events_dropped",
             "Events of an imported trace that could not be read: without valid times, or malformed."},
    DropInfo{DropReason::kTraceEventsUnused, false, "trace_events_unused",
             "Events of an imported trace that no table holds: flows, counters, names, sizes of memory."},
};

template <>
struct EnumNames<DropReason> {
  static constexpr std::string_view Name(DropReason reason) {
    return kDropReasons[static_cast<size_t>(reason)].name;
  }
};

// Counts by reason since the last Take. Not thread-safe: each source owns one.
class DropCounts {
 public:
  void Add(DropReason reason, int64_t count = 1) { counts_[static_cast<size_t>(reason)] += count; }
  int64_t Of(DropReason reason) const { return counts_[static_cast<size_t>(reason)]; }
  void Merge(const DropCounts& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  DropCounts Take() { return std::exchange(*this, {}); }

 private:
  std::array<int64_t, kDropReasons.size()> counts_{};
};

}  // namespace gpusonde::model
