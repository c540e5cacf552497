// SPDX-License-Identifier: Apache-2.0
#include "importers/nsys/row_reader.h"

#include <algorithm>
#include <limits>

namespace gpusonde::importers::nsys {
namespace {

// Enough to make the sink's virtual call cheap, and little enough to stay in the first-level cache.
constexpr size_t kBatch = 256;

constexpr std::string_view kNoName = "[unnamed]";

int64_t IntegerOr(const sqlite::Cell& cell, int64_t otherwise) {
  return cell.is_integer() ? cell.integer : otherwise;
}

int64_t CorrelationOf(const sqlite::Cell& cell) {
  const bool valid =
      cell.is_integer() && cell.integer >= 0 && cell.integer <= std::numeric_limits<uint32_t>::max();
  return valid ? cell.integer : kNoCorrelation;
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

MemoryKind MemoryKindOf(int64_t memory_kind) {
  switch (memory_kind) {
    case 0:
      return MemoryKind::kPageable;
    case 1:
      return MemoryKind::kPinned;
    case 2:
    case 3:  // array
    case 5:  // device static
      return MemoryKind::kDevice;
    case 4:
    case 6:  // managed static
      return MemoryKind::kManaged;
    default:
      return MemoryKind::kUnknown;
  }
}

Status RowReader::Begin(size_t index) {
  Reading& reading = readers_[index];
  if (reading.rows != nullptr) return {};
  const OpenTable& table = tables_[index];
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
    reading.cell_of[i] = static_cast<uint8_t>(places[i].value_or(columns.size()));
  ASSIGN_OR_RETURN(reading.rows, table.table.Read(columns));
  return {};
}

Status RowReader::Read(const Shard& shard) {
  TRY(Begin(shard.source));
  Reading& reading = readers_[shard.source];
  TRY(reading.rows->Seek(shard.first));
  const Kind kind = tables_[shard.source].kind.kind;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reading.rows->Next(row_));
    if (!more) break;
    TRY(Dispatch(kind, reading));
    if (batch_.size() >= kBatch) batch_.HandOver(sink_);
  }
  batch_.HandOver(sink_);
  return {};
}

Status RowReader::Dispatch(Kind kind, const Reading& reading) {
  switch (kind) {
    case Kind::kKernel:
      return AddKernel(reading);
    case Kind::kMemcpy:
      AddMemcpy(reading);
      return {};
    case Kind::kMemset:
      AddMemset(reading);
      return {};
    case Kind::kRuntime:
      return AddCall(reading);
    case Kind::kNvtx:
      AddRange(reading);
      return {};
    case Kind::kSync:
    case Kind::kGraph:
      ++batch_.others;
      return {};
  }
  return {};
}

bool RowReader::Times(const Reading& reading, int64_t& start_ns, int64_t& end_ns) {
  const sqlite::Cell& start = At(reading, kStart);
  const sqlite::Cell& end = At(reading, kEnd);
  if (!start.is_integer() || !end.is_integer()) {
    sink_.Drop(Dropped::kBadTime, 1);
    return false;
  }
  start_ns = start.integer;
  end_ns = end.integer;
  return CheckTimes(start_ns, end_ns, sink_);
}

bool RowReader::FillGpu(const Reading& reading, GpuEvent& event) {
  if (!Times(reading, event.start_ns, event.end_ns)) return false;
  const int64_t device = IntegerOr(At(reading, kDevice), 0);
  const int64_t stream = IntegerOr(At(reading, kStream), 0);
  if (device < 0 || device > std::numeric_limits<int32_t>::max() || stream < 0 ||
      stream > std::numeric_limits<uint32_t>::max()) {
    sink_.Drop(Dropped::kWrongType, 1);
    return false;
  }
  event.device = static_cast<int32_t>(device);
  event.stream = static_cast<uint32_t>(stream);
  event.correlation = CorrelationOf(At(reading, kCorrelation));
  event.process = IntegerOr(At(reading, kGlobalPid), 0) >> kThreadBits;
  return true;
}

Status RowReader::AddKernel(const Reading& reading) {
  GpuEvent event;
  if (!FillGpu(reading, event)) return {};
  const sqlite::Cell& name = At(reading, kName);
  ASSIGN_OR_RETURN(event.name, NameOf(name.is_integer() ? name : At(reading, kShortName)));
  std::array<int64_t, 6> extents{};
  for (size_t i = 0; i < extents.size(); ++i) extents[i] = IntegerOr(At(reading, kGridX + i), 0);
  event.shape = ShapeOf(extents);
  batch_.gpu.push_back(event);
  return {};
}

void RowReader::AddMemcpy(const Reading& reading) {
  GpuEvent event{.work = GpuWork::kMemcpy};
  if (!FillGpu(reading, event)) return;
  event.bytes = std::max<int64_t>(0, IntegerOr(At(reading, kBytes), 0));
  event.copy = CopyKindOf(IntegerOr(At(reading, kCopyKind), 0));
  event.source = MemoryKindOf(IntegerOr(At(reading, kSourceKind), -1));
  event.target = MemoryKindOf(IntegerOr(At(reading, kTargetKind), -1));
  batch_.gpu.push_back(event);
}

void RowReader::AddMemset(const Reading& reading) {
  GpuEvent event{.work = GpuWork::kMemset};
  if (!FillGpu(reading, event)) return;
  event.bytes = std::max<int64_t>(0, IntegerOr(At(reading, kMemsetBytes), 0));
  event.target = MemoryKindOf(IntegerOr(At(reading, kMemoryKind), -1));
  batch_.gpu.push_back(event);
}

Status RowReader::AddCall(const Reading& reading) {
  ApiCall call;
  if (!Times(reading, call.start_ns, call.end_ns)) return {};
  call.process = IntegerOr(At(reading, kGlobalTid), 0) >> kThreadBits;
  call.correlation = CorrelationOf(At(reading, kCallCorrelation));
  ASSIGN_OR_RETURN(call.name, NameOf(At(reading, kNameId)));
  batch_.calls.push_back(call);
  return {};
}

void RowReader::AddRange(const Reading& reading) {
  const int64_t type = IntegerOr(At(reading, kEventType), 0);
  if (type != kPushPopRange && type != kStartEndRange) {
    ++batch_.others;
    return;
  }
  const sqlite::Cell& start = At(reading, kStart);
  if (!start.is_integer()) return sink_.Drop(Dropped::kBadTime, 1);
  // A range that was still open when the capture ended has no end.
  const int64_t end_ns = IntegerOr(At(reading, kEnd), start.integer);
  if (CheckTimes(start.integer, end_ns, sink_)) batch_.ranges.push_back({start.integer, end_ns});
}

Result<uint32_t> RowReader::NameOf(const sqlite::Cell& cell) {
  if (!cell.is_integer()) return sink_.Name(kNoName);
  Recent& recent = recent_[static_cast<uint64_t>(cell.integer) % recent_.size()];
  if (cell.integer == recent.id) return recent.name;
  const auto known = names_.find(cell.integer);
  uint32_t name = 0;
  if (known != names_.end()) {
    name = known->second;
  } else {
    ASSIGN_OR_RETURN(name, LookUpName(cell.integer));
  }
  recent = {.id = cell.integer, .name = name};
  return name;
}

Result<uint32_t> RowReader::LookUpName(int64_t string_id) {
  std::string_view name = kNoName;
  const std::optional<size_t> value = strings_.has_value() ? strings_->Find("value") : std::nullopt;
  sqlite::Row row;
  if (value.has_value()) {
    if (string_reader_ == nullptr) {
      ASSIGN_OR_RETURN(string_reader_, strings_->Read(std::array{*value}));
    }
    ASSIGN_OR_RETURN(const bool found, string_reader_->Find(string_id, row));
    if (found &&
        (row.cells[0].type == sqlite::CellType::kText || row.cells[0].type == sqlite::CellType::kBlob))
      name = row.cells[0].bytes;
  }
  const uint32_t id = sink_.Name(name);
  names_.emplace(string_id, id);
  return id;
}

}  // namespace gpusonde::importers::nsys
