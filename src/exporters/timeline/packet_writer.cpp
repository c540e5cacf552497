// SPDX-License-Identifier: Apache-2.0
#include "exporters/timeline/packet_writer.h"

#include <google/protobuf/io/coded_stream.h>

#include "base/utf8.h"

namespace gpusonde::exporters {
namespace {

constexpr uint32_t kSequence = 1;
constexpr uint32_t kStartsAnew = 1;
constexpr uint32_t kNeedsInterned = 2;
constexpr uint32_t kRealtime = 1;
constexpr uint32_t kBoottime = 6;
constexpr size_t kFlushBytes = size_t{1} << 20;

// Names kept by id; a hostile recording has as many as it has rows.
constexpr size_t kMaxInterned = 20'000;

}  // namespace

Status PacketWriter::Write(const perfetto::TracePacket& packet) {
  constexpr uint8_t kPacketTag = 0x0A;  // Trace.packet, length-delimited
  packet.SerializeToString(&bytes_);
  uint8_t head[6] = {kPacketTag};
  uint8_t* const end = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(bytes_.size()), head + 1);
  piece_.append(reinterpret_cast<const char*>(head), static_cast<size_t>(end - head));
  piece_ += bytes_;
  return piece_.size() < kFlushBytes ? Status{} : Flush();
}

Status PacketWriter::Flush() {
  TRY(output_(piece_));
  piece_.clear();
  return {};
}

Status PacketWriter::WriteClock(int64_t time_ns) {
  perfetto::TracePacket packet;
  packet.set_trusted_packet_sequence_id(kSequence);
  for (const uint32_t clock_id : {kBoottime, kRealtime}) {
    perfetto::ClockSnapshot::Clock& clock = *packet.mutable_clock_snapshot()->add_clocks();
    clock.set_clock_id(clock_id);
    clock.set_timestamp(static_cast<uint64_t>(time_ns));
  }
  return Write(packet);
}

Status PacketWriter::Write(const perfetto::TrackDescriptor& track) {
  perfetto::TracePacket packet;
  packet.set_trusted_packet_sequence_id(kSequence);
  *packet.mutable_track_descriptor() = track;
  return Write(packet);
}

perfetto::TrackEvent& PacketWriter::NewEvent(int64_t time_ns, perfetto::TrackEvent::Type type,
                                             uint64_t track) {
  event_.Clear();
  event_.set_timestamp(static_cast<uint64_t>(time_ns));
  event_.set_trusted_packet_sequence_id(kSequence);
  event_.set_sequence_flags(begun_ ? kNeedsInterned : kNeedsInterned | kStartsAnew);
  begun_ = true;
  perfetto::TrackEvent& event = *event_.mutable_track_event();
  event.set_type(type);
  event.set_track_uuid(track);
  return event;
}

Status PacketWriter::WriteEvent() { return Write(event_); }

template <class Announce>
uint64_t PacketWriter::Intern(Interned& known, std::string_view text, const Announce& announce) {
  std::string valid = ToUtf8(text);
  if (const auto found = known.find(valid); found != known.end()) return found->second;
  if (known.size() == kMaxInterned) return 0;
  const uint64_t iid = known.size() + 1;
  perfetto::InternedString& entry = *announce(*event_.mutable_interned_data());
  entry.set_iid(iid);
  entry.set_name(valid);
  known.emplace(std::move(valid), iid);
  return iid;
}

void PacketWriter::SetName(perfetto::TrackEvent& event, std::string_view name) {
  const uint64_t iid = Intern(names_, name, [](auto& data) { return data.add_event_names(); });
  if (iid != 0)
    event.set_name_iid(iid);
  else
    event.set_name(ToUtf8(name));
}

void PacketWriter::AddCategory(perfetto::TrackEvent& event, std::string_view category) {
  const uint64_t iid = Intern(categories_, category, [](auto& data) { return data.add_event_categories(); });
  if (iid != 0) event.add_category_iids(iid);  // else hostile: there are a handful
}

perfetto::DebugAnnotation& PacketWriter::AddArgument(perfetto::TrackEvent& event, std::string_view name) {
  perfetto::DebugAnnotation& argument = *event.add_debug_annotations();
  argument.set_name_iid(
      Intern(arguments_, name, [](auto& data) { return data.add_debug_annotation_names(); }));
  return argument;
}

}  // namespace gpusonde::exporters
