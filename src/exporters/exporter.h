// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/process_facts.h"
#include "model/profile.h"

// Exports profiles in the formats of other tools.
namespace gpusonde::exporters {

// What the numbers of a format with one number per stack count: samples (for GPU time: kernels, copies and
// sets) or time. Formats that carry both ignore it.
enum class Value : uint8_t { kSamples, kMicroseconds };

struct Options {
  std::string title = "gpusonde";  // the profile's name, where the format has one
  Value value = Value::kSamples;
  // Keeps processes and threads of the same name separate, with their ids; else sums them by process name.
  // Formats that always separate threads ignore it.
  bool per_thread = false;
  // Of the profile's processes, for formats with Exporter::process_facts.
  model::ProcessFactsById processes = {};
};

// One format. A new one is a file that defines its Exporter, and a line each below and in exporter.cpp.
struct Exporter {
  std::string_view name;       // as in `--format folded`
  std::string_view meaning;    // a phrase for --help: what the format is and what reads it
  std::string_view extension;  // of its files: ".folded"
  bool line_based;             // text for pipes and terminals; the others are files for programs
  // The whole file; the same profile and options give the same bytes. Thread-safe. Errors: kUnsupported when
  // the profile is too large for the format.
  Result<std::string> (*render)(const model::Profile& profile, const Options& options);
  bool process_facts = false;  // writes Options::processes
};

extern const Exporter kFolded;
extern const Exporter kOtlp;
extern const Exporter kPprof;
extern const Exporter kSpeedscope;

// Every format, by name.
std::span<const Exporter* const> AllExporters();

// The format of that name, or null.
const Exporter* FindExporter(std::string_view name);

}  // namespace gpusonde::exporters
