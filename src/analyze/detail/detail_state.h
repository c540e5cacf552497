// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/detail/detail_sink.h"
#include "analyze/detail/spans.h"
#include "analyze/detail/waves.h"
#include "analyze/trace_state.h"
#include "base/result.h"
#include "importers/event.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

// A trace read in detail: GPU work with the calls that launched it and their threads, and what else threads
// did. Reads a whole trace in file order, so that results don't depend on threads or parts. Not thread-safe.
class DetailState final : public DetailSink {
 public:
  struct Wanted {
    bool calls = false;  // in spans()
    bool waves = false;
  };
  // `one_process`: events of the format don't say which process they are of.
  DetailState(bool one_process, Wanted wanted)
      : one_process_(one_process), wanted_(wanted), spans_(std::make_shared<TemporaryFile>()) {}

  uint32_t Name(std::string_view name) override;
  void Detailed(const importers::EventBatch& batch) override;

  // Nothing was recorded where the trace has no event.
  void LeaveOutUnrecorded() { state_.SetUnrecorded(FindUnrecorded(state_.recorded())); }
  // Sorts what was read. Errors: those of temporary files, whenever they occurred.
  Status Finish();

  // GPU work, calls with the numbers of their threads, and the ranges that may be steps.
  const TraceState& state() const { return state_; }
  // Operators, modules and ranges; their tid is the number of their thread.
  const SpanRuns& spans() const { return spans_; }
  // What its kernels lose in last waves, once the trace's information is complete.
  std::vector<RankWaves> Waves(const importers::TraceInfo& info) const {
    return waves_.Finish(info.devices, state_.names());
  }
  // Modules of PyTorch are Python functions of this name; other Python functions are left out.
  static constexpr std::string_view kModule = "nn.Module: ";
  // Whether a range of this name is a step of PyTorch's profiler.
  bool IsProfilerStep(uint32_t name) const { return properties_[name].step; }

 private:
  // Of more threads, all further ones have the same number.
  static constexpr size_t kMaxThreads = 65'536;

  // The process and thread of a span, numbered.
  importers::Span Numbered(const importers::Span& span);
  void Add(const importers::Span& span);
  bool IsModule(uint32_t name) const { return name < properties_.size() && properties_[name].module; }

  struct Properties {
    bool module = false;
    bool step = false;
    bool arguments = false;  // emit_nvtx appended some: an operator
  };

  bool one_process_;
  Wanted wanted_;
  TraceState state_;
  SpanRuns spans_;
  std::vector<Properties> properties_;  // of names
  std::map<std::pair<int64_t, int32_t>, uint32_t> threads_;
  std::vector<importers::GpuEvent> gpu_;
  WaveTable waves_;
};

}  // namespace gpusonde::analyze
