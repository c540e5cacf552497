// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/enums.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per run of a data source: a recorder, an agent, an import.
struct Source {
  Id128 source;
  SourceKind kind{};
  std::string host;
  std::string boot_id;
  std::string kernel;
  std::string version;
  int32_t cpus = 0;
  std::optional<double> sampling_hz;
  std::optional<std::string> command;
  int64_t epoch_offset_ns = 0;
  int64_t started_ns = 0;
  std::optional<int64_t> ended_ns;
};

inline constexpr Table kSources(
    "sources", Key{1}, "One row per run of a data source: a recorder, an agent, an import",
    Field("source", &Source::source, "", "identifies the run"),
    Field("kind", &Source::kind, "", "record, agent or import"),
    Field("host", &Source::host, "", "host name"),
    Field("boot_id", &Source::boot_id, "", "the kernel's random boot id"),
    Field("kernel", &Source::kernel, "", "kernel release"),
    Field("version", &Source::version, "", "version of gpusonde that wrote it"),
    Field("cpus", &Source::cpus, "", "online CPUs"),
    Field("sampling_hz", &Source::sampling_hz, "Hz",
          "CPU sampling frequency, null when CPUs were not sampled"),
    Field("command", &Source::command, "", "the recorded command, as typed; null for the whole machine"),
    Field("epoch_offset_ns", &Source::epoch_offset_ns, "ns",
          "added to the monotonic clock to give every time of this source"),
    Field("started_ns", &Source::started_ns, "ns", "start of the run"),
    Field("ended_ns", &Source::ended_ns, "ns", "end of the run; null while it runs or if it was killed"));

}  // namespace gpusonde::model
