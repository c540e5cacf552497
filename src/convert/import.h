// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpusonde::convert {

struct ImportOptions {
  bool partial = false;  // import the readable part of damaged traces instead of failing
  // Bound on the bytes of temporary files, and on those of the recording.
  uint64_t temp_limit = std::numeric_limits<uint64_t>::max();
  // Import only what devices did: the tables kernels, memcpys, memsets, syncs and devices. Other
  // tables may then have fewer rows, or rows with fewer values.
  bool gpu_only = false;
  // Also accept files of Nsight Compute, whose launches have metrics, but no times.
  bool metrics = false;
  // Also find the steps of its programs and incidents, as `gpusonde diagnose` does. Not with gpu_only.
  bool diagnose = true;
};

struct ImportSummary {
  struct Trace {
    std::string path;
    std::string format;      // importers::Name
    int64_t events = 0;      // that are rows now, or frames of stacks
    int64_t gpu_events = 0;  // of them, those of GPUs
    int64_t dropped = 0;     // that could not be read
    bool truncated = false;
  };
  std::vector<Trace> traces;
};

// Refuses traces or recordings that are named twice, also by different paths: all of them would count twice.
// Errors: kInvalidArgument.
Status RefuseRepeated(const std::vector<std::string>& files);

// Writes a recording at `path`, atomically, with the events of traces as rows of the model. Several traces,
// such as those of a job's ranks, become processes of one recording. Times are ns since the Unix epoch as far
// as a trace says when its clock began: sources.epoch_offset_ns is what was added to the trace's own times.
// Memory doesn't grow with the traces; temporary files do. Errors: those of importers::OpenTrace and of
// reading; kUnsupported for recordings, and for files of Nsight Compute unless asked for; kInvalidArgument
// for a trace named twice; those of store::WriteRecording.
Result<ImportSummary> ImportTraces(const std::vector<std::string>& traces, const ImportOptions& options,
                                   const std::string& path);

}  // namespace gpusonde::convert
