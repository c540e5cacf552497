// SPDX-License-Identifier: Apache-2.0
#include "agent/stack_trim.h"

#include <cstddef>
#include <string>

#include "sources/cupti/gpu_events.h"

namespace gpusonde::agent {

void CountEnds(const Process& process, const gpusonde_stack_counts& counts, model::DropCounts& drops) {
  using enum model::DropReason;
  if (counts.native_end == GPUSONDE_NATIVE_FRAME_POINTERS) drops.Add(kUnwindNotReady);
  // Of so many mappings some are not known to the unwinder (ebpf::StackTables::SetProcess).
  const bool some_unknown = process.mappings.size() > GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS;
  if (counts.native_end == GPUSONDE_NATIVE_NO_RULE ||
      (counts.native_end == GPUSONDE_NATIVE_NO_MAPPING && some_unknown))
    drops.Add(kUnwindNoRule);
  if (counts.native_end == GPUSONDE_NATIVE_UNSUPPORTED) drops.Add(kUnwindUnsupported);
  if (counts.native_end == GPUSONDE_NATIVE_UNREADABLE) drops.Add(kUnwindUnreadable);
  if (counts.python_end == GPUSONDE_PYTHON_UNKNOWN && process.python != nullptr) drops.Add(kPythonNotReady);
  if (counts.python_end == GPUSONDE_PYTHON_UNREADABLE) drops.Add(kPythonStackLost);
}

void HideObservers(const Process& process, gpusonde_stack_counts& counts, std::span<uint64_t>& frames) {
  if (counts.kernel_frames != 0) return;
  size_t hidden = 0;
  while (hidden < counts.user_frames) {
    const AddressSpace::Mapping* mapping = process.mappings.Find(frames[hidden]);
    if (mapping == nullptr || mapping->binary == nullptr) break;
    const std::string& name = mapping->binary->name;
    if (!cupti::LooksLikeInjectLibrary(name) && !name.starts_with("libcupti.so")) break;
    ++hidden;
  }
  if (hidden == 0) return;
  counts.user_frames = static_cast<uint16_t>(counts.user_frames - hidden);
  frames = frames.subspan(hidden);
  if (counts.user_frames > 0) --frames.front();  // from the return address into the call, as for a leaf
}

}  // namespace gpusonde::agent
