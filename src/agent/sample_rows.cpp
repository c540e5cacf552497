// SPDX-License-Identifier: Apache-2.0
#include "agent/sample_rows.h"

#include "agent/stack_trim.h"
#include "model/enums.h"
#include "sources/ebpf/raw_stack.h"

namespace gpusonde::agent {

void SampleRows::Ingest(const ebpf::RawSample& sample, Process& process) {
  CountEnds(process, sample.stack.counts(), outputs_.drops);
  outputs_.rows.samples.Append({.time_ns = sample.time_ns + epoch_offset_ns_,
                                .process = process.id,
                                .tid = sample.tid,
                                .cpu = sample.cpu,
                                .stack = stacks_.Intern(process, sample.stack, outputs_.drops),
                                .state = model::ThreadState::kOnCpu,
                                .weight_ns = period_ns_});
}

void SampleRows::Ingest(const ebpf::OffCpuBegin& begin, Process& process) {
  CountEnds(process, begin.stack.counts(), outputs_.drops);
  gpusonde_stack_counts counts = begin.stack.counts();
  const size_t watchers = stacks_.CountSchedulerWatchers(begin.stack.kernel());
  counts.kernel_frames = static_cast<uint16_t>(counts.kernel_frames - watchers);
  const ebpf::RawStack stack(counts, begin.stack.words().subspan(watchers));
  const bool taken = !begin.stack.words().empty();
  outputs_.off_cpu_rows.Begin(begin.head, process.id,
                              taken ? stacks_.Intern(process, stack, outputs_.drops) : stacks_.UnknownStack(),
                              IsInCudaCall(process, stack.user()));
}

void SampleRows::Ingest(const cupti::Event& event, Process& process) {
  CountEnds(process, event.stack.counts(), outputs_.drops);
  gpusonde_stack_counts counts = event.stack.counts();
  frames_.assign(event.stack.words().begin(), event.stack.words().end());
  std::span<uint64_t> frames = frames_;
  HideObservers(process, counts, frames);
  outputs_.gpu_rows.Ingest(event, process.id,
                           stacks_.Intern(process, ebpf::RawStack(counts, frames), outputs_.drops));
}

}  // namespace gpusonde::agent
