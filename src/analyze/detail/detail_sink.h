// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "importers/event.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

// A sink of a trace that is read in detail, whose events all come as Detailed.
class DetailSink : public importers::EventSink {
 public:
  void Group(const importers::ProcessGroup& /*group*/) override {}
  // Only formats without details have these: recordings and Nsight Compute's files.
  void Gpu(std::span<const importers::GpuEvent> /*events*/) override {}
  void Api(std::span<const importers::ApiCall> /*calls*/) override {}
  void Ranges(std::span<const importers::Range> /*ranges*/) override {}
  void Launch(const importers::MeasuredLaunch& /*launch*/,
              std::span<const importers::MetricValue> /*metrics*/) override {}
  void MetricTexts(int64_t /*count*/) override {}
  void Other(int64_t /*count*/) override {}
  void Drop(importers::Dropped /*reason*/, int64_t /*count*/) override {}
};

// Reads the rest of a trace into `sink`. `partial`: what can't be read is left out. Errors: those of reading.
Status ReadAll(importers::Trace& trace, bool partial, DetailSink& sink);

}  // namespace gpusonde::analyze
