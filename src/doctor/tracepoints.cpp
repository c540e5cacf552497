// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>

#include "doctor/advice.h"
#include "doctor/probes.h"
#include "doctor/trivial_program.h"

namespace gpusonde::doctor {

// Loads and attaches a typed tracepoint of the scheduler, which `record` uses to follow a program's children.
Finding ProbeTracepoints(const Settings&) {
  const int type_id = ::libbpf_find_vmlinux_btf_id("sched_process_fork", BPF_TRACE_RAW_TP);
  if (type_id < 0) return FailsWithErrno(-type_id, "find the tracepoint sched_process_fork");
  const Fd program = LoadTrivialProgram(BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, type_id);
  if (!program.valid()) return FailsWithErrno(errno, "load a program for the tracepoint sched_process_fork");
  const Fd link(::bpf_raw_tracepoint_open(nullptr, program.get()));
  if (!link.valid()) return FailsWithErrno(errno, "attach to the tracepoint sched_process_fork");
  return Works("attached to the tracepoint sched_process_fork");
}

}  // namespace gpusonde::doctor
