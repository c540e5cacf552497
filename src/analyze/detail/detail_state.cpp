// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/detail_state.h"

#include <algorithm>

#include "model/span_name.h"

namespace gpusonde::analyze {

using importers::Span;
using importers::SpanKind;

uint32_t DetailState::Name(std::string_view name) {
  const std::string_view kept = model::WithoutArguments(name);
  const uint32_t id = state_.Name(kept);
  if (id >= properties_.size()) properties_.resize(size_t{id} + 1);
  properties_[id].module |= kept.starts_with(kModule);
  properties_[id].step |= kept.starts_with("ProfilerStep#");
  properties_[id].arguments |= kept.size() < name.size();
  return id;
}

Span DetailState::Numbered(const Span& span) {
  const auto last = static_cast<uint32_t>(kMaxThreads - 1);
  const auto next = static_cast<uint32_t>(std::min<size_t>(threads_.size(), last));
  Span numbered = span;
  if (const auto known = threads_.find({span.process, span.tid}); known != threads_.end())
    numbered.tid = static_cast<int32_t>(known->second);
  else if (next == last)
    numbered.tid = static_cast<int32_t>(last);
  else
    numbered.tid = static_cast<int32_t>(threads_.try_emplace({span.process, span.tid}, next).first->second);
  if (one_process_) numbered.process = 0;
  return numbered;
}

void DetailState::Detailed(const importers::EventBatch& batch) {
  gpu_ = batch.gpu;
  if (one_process_)
    for (importers::GpuEvent& event : gpu_) event.process = 0;
  if (!gpu_.empty()) state_.Gpu(gpu_);
  for (size_t i = 0; wanted_.waves && i < gpu_.size(); ++i)
    if (gpu_[i].work == importers::GpuWork::kKernel) waves_.Add(gpu_[i], batch.gpu_details[i]);
  for (const Span& span : batch.spans) state_.Cover(span.start_ns, span.end_ns);
  for (const importers::SyncWait& wait : batch.syncs) state_.Cover(wait.start_ns, wait.end_ns);
  for (const Span& span : batch.spans)
    if (span.kind != SpanKind::kOsCall && (span.kind != SpanKind::kPython || IsModule(span.name)))
      Add(Numbered(span));
}

void DetailState::Add(const Span& span) {
  if (span.kind == SpanKind::kCall) {
    const importers::ApiCall call{.start_ns = span.start_ns,
                                  .end_ns = span.end_ns,
                                  .process = span.process,
                                  .correlation = span.correlation,
                                  .name = span.name,
                                  .thread = static_cast<uint32_t>(span.tid)};
    if (wanted_.calls) spans_.Add(span);
    return state_.Api({&call, 1});
  }
  if (span.has_end == 0) return;
  spans_.Add(span);
  const bool is_range = span.kind == SpanKind::kAnnotation || span.kind == SpanKind::kNvtxPushPop ||
                        span.kind == SpanKind::kNvtxStartEnd;
  if (!is_range || properties_[span.name].arguments) return;
  const importers::Range range{.start_ns = span.start_ns,
                               .end_ns = span.end_ns,
                               .process = span.process,
                               .label = state_.Label(state_.names()[span.name])};
  state_.Ranges({&range, 1});
}

Status DetailState::Finish() {
  TRY(spans_.Finish());
  return state_.Finish();
}

}  // namespace gpusonde::analyze
