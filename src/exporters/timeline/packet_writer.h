// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <perfetto.pb.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "exporters/timeline/timeline_format.h"

namespace gpusonde::exporters {

// Writes the packets of one sequence of a Perfetto trace. Texts may contain any bytes: invalid UTF-8 becomes
// U+FFFD. Not thread-safe. Errors: those of the output.
class PacketWriter {
 public:
  explicit PacketWriter(Output output) : output_(std::move(output)) {}

  // Says that the trace's clock is the time since the Unix epoch.
  Status WriteClock(int64_t time_ns);
  Status Write(const perfetto::TrackDescriptor& track);
  // A packet to fill and then to pass to Write(packet); the same one each time.
  perfetto::TrackEvent& NewEvent(int64_t time_ns, perfetto::TrackEvent::Type type, uint64_t track);
  void SetName(perfetto::TrackEvent& event, std::string_view name);
  void AddCategory(perfetto::TrackEvent& event, std::string_view category);
  perfetto::DebugAnnotation& AddArgument(perfetto::TrackEvent& event, std::string_view name);
  // Writes the event begun with NewEvent.
  Status WriteEvent();
  // Writes what is buffered.
  Status Flush();

 private:
  // Texts that the reader knows, with their ids.
  using Interned = std::unordered_map<std::string, uint64_t>;

  Status Write(const perfetto::TracePacket& packet);
  // The id of a text; a new one is announced in the current packet. 0: too many are known already.
  template <class Announce>
  uint64_t Intern(Interned& known, std::string_view text, const Announce& announce);

  Output output_;
  std::string piece_;
  std::string bytes_;
  perfetto::TracePacket event_;
  bool begun_ = false;
  Interned categories_, names_, arguments_;
};

}  // namespace gpusonde::exporters
