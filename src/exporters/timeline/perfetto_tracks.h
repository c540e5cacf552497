// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "exporters/timeline/lanes.h"
#include "exporters/timeline/packet_writer.h"
#include "model/timeline.h"

namespace gpusonde::exporters {

// The tracks of a Perfetto trace, described the first time that they are asked for: processes with their
// threads, and devices with their streams. Spans that overlap without nesting, which Perfetto can't show on
// one track, get several of the same name; its UI shows these as one. Not thread-safe. Errors: those of the
// writer.
class PerfettoTracks {
 public:
  // Both must outlive the object.
  PerfettoTracks(const model::TimelineNames& names, PacketWriter& writer);

  // The track of a span; of each kind and owner they must come by start.
  Result<uint64_t> OfWork(const model::GpuWork& work);
  Result<uint64_t> OfThread(Id128 process, int32_t tid, int64_t start_ns, int64_t end_ns);
  // A further row of a process, such as "steps".
  Result<uint64_t> OfRow(Id128 process, std::string_view row, int64_t start_ns, int64_t end_ns);
  // Of a metric's values.
  Result<uint64_t> OfCounter(const model::MetricValue& value);

 private:
  // Tracks of one name.
  struct Row {
    uint64_t parent = 0;
    std::string name;
    Lanes lanes;
    std::vector<uint64_t> tracks;  // by lane
  };
  struct Device {
    std::string name;
    uint64_t track = 0;
    Id128 process;  // the first that used it
  };

  Result<uint64_t> Describe(perfetto::TrackDescriptor& track);
  Result<uint64_t> Place(Row& row, int64_t start_ns, int64_t end_ns);
  Result<uint64_t> OfProcess(Id128 process);
  Result<uint64_t> OfDevice(Id128 device);

  PacketWriter& writer_;
  uint64_t last_ = 0;
  std::unordered_map<Id128, model::Process> process_rows_;
  std::map<std::pair<Id128, int32_t>, std::string> thread_names_;
  std::unordered_map<Id128, Device> devices_;
  std::unordered_map<Id128, uint64_t> processes_;
  std::map<std::pair<Id128, int32_t>, Row> threads_;
  std::map<std::tuple<Id128, Id128, int64_t, int64_t>, Row> streams_;
  std::map<std::pair<Id128, std::string>, Row> rows_;
  std::map<std::tuple<uint64_t, Id128, std::string>, uint64_t> counters_;
};

}  // namespace gpusonde::exporters
