// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/timeline.h"

// Exports timelines in the formats of trace viewers.
namespace gpusonde::exporters {

// Receives the bytes of a file in pieces, in order. Errors: those of writing them.
using Output = std::function<Status(std::string_view bytes)>;

// One format. A new one is a file that defines its TimelineFormat, and a line each below and in
// timeline_format.cpp.
struct TimelineFormat {
  std::string_view name;       // as in `--format chrome`
  std::string_view meaning;    // a phrase for --help: what the format is and what reads it
  std::string_view extension;  // of its files: ".trace.json"
  // A writer to `output`. Its memory grows with the numbers of processes, threads, devices, streams and
  // names, not with that of events. The file is complete after End. `title` is the trace's name, where the
  // format has one. Not thread-safe. Errors of its methods: those of `output`.
  std::unique_ptr<model::TimelineSink> (*create)(Output output, const std::string& title);
};

extern const TimelineFormat kChrome;
extern const TimelineFormat kPerfetto;

// Every format, by name.
std::span<const TimelineFormat* const> AllTimelineFormats();

// The format of that name, or null.
const TimelineFormat* FindTimelineFormat(std::string_view name);

}  // namespace gpusonde::exporters
