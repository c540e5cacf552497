// SPDX-License-Identifier: Apache-2.0
#include "importers/activities/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/demangle.h"

namespace gpusonde::importers::activities {
namespace {

// Large enough to make the sink's virtual call cheap, and small enough for the first-level cache.
constexpr size_t kActivitiesBatch = 256;

// 4 MiB for each table.
constexpr size_t kMaxCachedNames = 65'536;

constexpr std::string_view kNoName = "[unnamed]";

// ENUM_NSYS_EVENT_TYPE: the two that are ranges.
constexpr int64_t kPushPopRange = 59;
constexpr int64_t kStartEndRange = 60;

// CUpti_ActivityFlag.
constexpr int64_t kMarkerStart = 1 << 1;

// Nsight's globalTid holds the hardware's id (8 bits), the virtual machine's (8), the process's (24) and the
// thread's (24); without the thread it identifies the process. globalPid is the same with a thread of 0.
constexpr int kThreadBits = 24;

int64_t CorrelationOf(int64_t number) {
  const bool valid = number >= 0 && number <= std::numeric_limits<uint32_t>::max();
  return valid ? number : kNoCorrelation;
}

}  // namespace

CopyKind CopyKindOf(int64_t copy_kind) {
  switch (copy_kind) {
    case 1:
    case 3:   // to an array
    case 11:  // managed memory
      return CopyKind::kHostToDevice;
    case 2:
    case 4:
    case 12:
      return CopyKind::kDeviceToHost;
    case 5:
    case 6:
    case 7:
    case 8:
    case 13:
      return CopyKind::kDeviceToDevice;
    case 9:
      return CopyKind::kHostToHost;
    case 10:
      return CopyKind::kPeerToPeer;
    default:
      return CopyKind::kUnknown;
  }
}

Status RowReader::Begin(size_t index) {
  Reading& reading = readers_[index];
  if (reading.rows != nullptr) return {};
  const OpenTable& table = tables_[index];
  reading.name_prefix = table.kind.name_prefix;
  std::vector<size_t> columns;
  std::array<std::optional<size_t>, 14> places;
  for (size_t i = 0; i < table.kind.columns.size(); ++i) {
    if (table.kind.columns[i].empty()) continue;
    const std::optional<size_t> column = table.table.Find(table.kind.columns[i]);
    if (!column.has_value()) continue;
    places[i] = columns.size();
    columns.push_back(*column);
  }
  for (size_t i = 0; i < places.size(); ++i)
    reading.places[i] = static_cast<uint8_t>(places[i].value_or(columns.size()));
  ASSIGN_OR_RETURN(reading.rows, table.table.Read(columns));
  return {};
}

Status RowReader::Read(const Shard& shard) {
  TRY(Begin(shard.source));
  Reading& reading = readers_[shard.source];
  TRY(reading.rows->Seek(shard.first));
  Status done = ReadRows(reading, tables_[shard.source].kind.kind);
  batch_.Flush(sink_);  // also the rows before one that failed
  return done;
}

Status RowReader::ReadRows(Reading& reading, Kind kind) {
  sqlite::IntegerRows rows;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reading.rows->NextIntegers(rows));
    if (!more) return {};
    for (size_t row = 0; row < rows.count; ++row) TRY(Add(reading, kind, Cells(rows, row, reading.places)));
    if (batch_.size() >= kActivitiesBatch) batch_.Flush(sink_);
  }
}

Status RowReader::Add(Reading& reading, Kind kind, const Cells& cells) {
  switch (kind) {
    case Kind::kKernel:
      return AddKernel(reading, cells);
    case Kind::kMemcpy:
      AddMemcpy(cells);
      return {};
    case Kind::kMemset:
      AddMemset(cells);
      return {};
    case Kind::kRuntime:
      return AddCall(reading, cells);
    case Kind::kNvtx:
      AddRange(cells);
      return {};
    case Kind::kMarker:
      AddMarker(cells);
      return {};
    case Kind::kGraph:
      return AddGraph(reading, cells);
    case Kind::kSync:
      ++batch_.others;
      return {};
  }
  return {};
}

bool RowReader::Times(const Cells& cells, int64_t& start_ns, int64_t& end_ns) {
  if (!cells.Has(kStart) || !cells.Has(kEnd)) {
    sink_.Drop(Dropped::kBadTime, 1);
    return false;
  }
  start_ns = cells[kStart];
  end_ns = cells[kEnd];
  if (start_ns == 0 && end_ns == 0 && layout_.raw_times) {
    sink_.Drop(Dropped::kNotCollected, 1);
    return false;
  }
  return CheckTimes(start_ns, end_ns, sink_);
}

bool RowReader::FillGpu(const Cells& cells, GpuEvent& event) {
  if (!Times(cells, event.start_ns, event.end_ns)) return false;
  const int64_t device = cells[kDevice];
  const int64_t stream = cells[kStream];
  if (device < 0 || device > std::numeric_limits<int32_t>::max() || stream < 0 ||
      stream > std::numeric_limits<uint32_t>::max()) {
    sink_.Drop(Dropped::kWrongType, 1);
    return false;
  }
  event.device = static_cast<int32_t>(device);
  event.stream = static_cast<uint32_t>(stream);
  event.correlation = CorrelationOf(cells.Or(kCorrelation, kNoCorrelation));
  event.process = cells[kGlobalPid] >> kThreadBits;
  return true;
}

Status RowReader::AddKernel(Reading& reading, const Cells& cells) {
  GpuEvent event;
  if (!FillGpu(cells, event)) return {};
  ASSIGN_OR_RETURN(event.name, NameOf(reading, cells, cells.Has(kName) ? kName : kShortName));
  event.shape =
      ShapeOf({cells[kGridX], cells[kGridY], cells[kGridZ], cells[kBlockX], cells[kBlockY], cells[kBlockZ]});
  batch_.gpu.push_back(event);
  return {};
}

void RowReader::AddMemcpy(const Cells& cells) {
  GpuEvent event{.work = GpuWork::kMemcpy};
  if (!FillGpu(cells, event)) return;
  event.bytes = std::max<int64_t>(0, cells[kBytes]);
  event.copy = CopyKindOf(cells[kCopyKind]);
  event.source = layout_.memory_kind(cells.Or(kSourceKind, -1));
  event.target = layout_.memory_kind(cells.Or(kTargetKind, -1));
  batch_.gpu.push_back(event);
}

void RowReader::AddMemset(const Cells& cells) {
  GpuEvent event{.work = GpuWork::kMemset};
  if (!FillGpu(cells, event)) return;
  event.bytes = std::max<int64_t>(0, cells[kMemsetBytes]);
  event.target = layout_.memory_kind(cells.Or(kMemoryKind, -1));
  batch_.gpu.push_back(event);
}

Status RowReader::AddGraph(Reading& reading, const Cells& cells) {
  GpuEvent event{.work = GpuWork::kGraph};
  if (!FillGpu(cells, event)) return {};
  ASSIGN_OR_RETURN(event.name, NameOf(reading, cells, kGraphId));
  batch_.gpu.push_back(event);
  return {};
}

Status RowReader::AddCall(Reading& reading, const Cells& cells) {
  ApiCall call;
  if (!Times(cells, call.start_ns, call.end_ns)) return {};
  call.process = cells[kGlobalTid] >> kThreadBits;
  call.correlation = CorrelationOf(cells.Or(kCallCorrelation, kNoCorrelation));
  ASSIGN_OR_RETURN(call.name, NameOf(reading, cells, kNameId));
  batch_.calls.push_back(call);
  return {};
}

void RowReader::AddRange(const Cells& cells) {
  const int64_t type = cells[kEventType];
  if (type != kPushPopRange && type != kStartEndRange) {
    ++batch_.others;
    return;
  }
  if (!cells.Has(kStart)) return sink_.Drop(Dropped::kBadTime, 1);
  const int64_t start_ns = cells[kStart];
  // A range that was still open when the capture ended has no end.
  const int64_t end_ns = cells.Or(kEnd, start_ns);
  if (CheckTimes(start_ns, end_ns, sink_)) batch_.ranges.push_back({start_ns, end_ns});
}

// nvprof stores a range as two rows, for its begin and its end, which may be far apart: ranges are counted at
// their begin.
void RowReader::AddMarker(const Cells& cells) {
  if ((cells[kMarkerFlags] & kMarkerStart) == 0) {
    ++batch_.others;
    return;
  }
  if (!cells.Has(kStart)) return sink_.Drop(Dropped::kBadTime, 1);
  const int64_t time_ns = cells[kStart];
  if (CheckTimes(time_ns, time_ns, sink_)) batch_.ranges.push_back({time_ns, time_ns});
}

Result<uint32_t> RowReader::NameOf(Reading& reading, const Cells& cells, size_t column) {
  if (!cells.Has(column)) return sink_.Name(kNoName);
  const int64_t id = cells[column];
  Recent& recent = reading.recent[static_cast<uint64_t>(id) % reading.recent.size()];
  if (recent.known && id == recent.id) return recent.name;
  const auto known = reading.names.find(id);
  uint32_t name = 0;
  if (known != reading.names.end()) {
    name = known->second;
  } else {
    if (reading.name_prefix.empty()) {
      ASSIGN_OR_RETURN(name, LookUpString(id));
    } else {
      name = sink_.Name(fmt::format("{}{}", reading.name_prefix, id));
    }
    if (reading.names.size() == kMaxCachedNames) reading.names.clear();
    reading.names.emplace(id, name);
  }
  recent = {.id = id, .name = name, .known = true};
  return name;
}

Result<uint32_t> RowReader::LookUpString(int64_t string_id) {
  const std::optional<size_t> value = strings_.has_value() ? strings_->Find("value") : std::nullopt;
  if (!value.has_value()) return sink_.Name(kNoName);
  if (string_reader_ == nullptr) {
    ASSIGN_OR_RETURN(string_reader_, strings_->Read(std::array{*value}));
  }
  sqlite::Row row;
  ASSIGN_OR_RETURN(const bool found, string_reader_->Find(string_id, row));
  const bool is_text =
      found && (row.cells[0].type == sqlite::CellType::kText || row.cells[0].type == sqlite::CellType::kBlob);
  if (!is_text) return sink_.Name(kNoName);
  const std::string_view name = row.cells[0].bytes;
  return layout_.mangled ? sink_.Name(Demangle(std::string(name))) : sink_.Name(name);
}

}  // namespace gpusonde::importers::activities
