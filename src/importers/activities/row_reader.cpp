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

// ENUM_NSYS_EVENT_TYPE: the two that are ranges, and what names a domain.
constexpr int64_t kPushPopRange = 59;
constexpr int64_t kStartEndRange = 60;
constexpr int64_t kDomainCreation = 75;

// CUpti_ActivityFlag.
constexpr int64_t kMarkerStart = 1 << 1;

constexpr int64_t kThreadMask = (int64_t{1} << kThreadBits) - 1;

bool IsText(const sqlite::Cell& cell) {
  return cell.type == sqlite::CellType::kText || cell.type == sqlite::CellType::kBlob;
}

// The number of an NVTX domain; 0 for the default one and for what is no number.
int32_t DomainOf(const sqlite::Cell& cell) {
  const bool valid =
      cell.is_integer() && cell.integer > 0 && cell.integer <= std::numeric_limits<int32_t>::max();
  return valid ? static_cast<int32_t>(cell.integer) : 0;
}

}  // namespace

SyncKind SyncKindOf(int64_t sync_type) {
  constexpr SyncKind kKinds[] = {SyncKind::kUnknown, SyncKind::kEvent, SyncKind::kStreamWait,
                                 SyncKind::kStream, SyncKind::kContext};
  return sync_type >= 0 && sync_type < std::ssize(kKinds) ? kKinds[sync_type] : SyncKind::kUnknown;
}

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
  reading.labels = !detail_ && table.kind.kind == Kind::kNvtx;
  std::vector<size_t> columns;
  std::array<std::optional<size_t>, kMaxColumns> places;
  const bool is_nvtx = table.kind.kind == Kind::kNvtx;
  const size_t nvtx_columns = detail_ ? size_t{kDomain} + 1 : nccl_.empty() ? size_t{kDomain} : kMaxColumns;
  const size_t count = is_nvtx ? nvtx_columns : detail_ ? kMaxColumns : kFirstDetail;
  for (size_t i = 0; i < count; ++i) {
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
  const Kind kind = tables_[shard.source].kind.kind;
  const bool has_texts = kind == Kind::kProcessNames || kind == Kind::kThreadNames || kind == Kind::kNvtx;
  Status done = has_texts ? ReadTexts(reading, kind) : ReadRows(reading, kind);
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

Status RowReader::ReadTexts(Reading& reading, Kind kind) {
  sqlite::Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reading.rows->Next(row));
    if (!more) return {};
    if (kind == Kind::kProcessNames)
      AddProcessName(reading, row);
    else if (kind == Kind::kThreadNames)
      TRY(AddThreadName(reading, row));
    else
      TRY(AddNamedRange(reading, row));
    if (batch_.size() >= kActivitiesBatch) batch_.Flush(sink_);
  }
}

void RowReader::AddProcessName(const Reading& reading, const sqlite::Row& row) {
  const sqlite::Cell& process = row.cells[reading.places[kNamedProcess]];
  const sqlite::Cell& name = row.cells[reading.places[kProcessName]];
  if (process.is_integer() && name.type == sqlite::CellType::kText)
    sink_.NameProcess(ProcessOf(process.integer), name.bytes);
}

Status RowReader::AddThreadName(const Reading& reading, const sqlite::Row& row) {
  const sqlite::Cell& thread = row.cells[reading.places[kNamedThread]];
  const sqlite::Cell& name = row.cells[reading.places[kThreadName]];
  if (!thread.is_integer() || !name.is_integer()) return {};
  ASSIGN_OR_RETURN(const std::string_view text, LookUpString(name.integer));
  sink_.NameThread(ProcessOf(thread.integer), static_cast<int32_t>(thread.integer & kThreadMask), text);
  return {};
}

Status RowReader::AddNamedRange(Reading& reading, const sqlite::Row& row) {
  const auto cell = [&](size_t column) -> const sqlite::Cell& { return row.cells[reading.places[column]]; };
  const int64_t type = cell(kEventType).integer;
  if (type != kPushPopRange && type != kStartEndRange) {
    ++batch_.others;
    return detail_ && type == kDomainCreation ? AddDomain(reading, row) : Status();
  }
  if (!cell(kStart).is_integer()) {
    sink_.Drop(Dropped::kBadTime, 1);
    return {};
  }
  const bool has_end = cell(kEnd).is_integer();
  const int64_t thread = cell(kRangeThread).integer;
  Span span{.start_ns = cell(kStart).integer,
            .end_ns = has_end ? cell(kEnd).integer : cell(kStart).integer,
            .process = ProcessOf(thread),
            .tid = static_cast<int32_t>(thread & kThreadMask),
            .kind = type == kPushPopRange ? SpanKind::kNvtxPushPop : SpanKind::kNvtxStartEnd,
            .has_end = has_end ? uint8_t{1} : uint8_t{0}};
  if (!CheckTimes(span.start_ns, span.end_ns, sink_)) return {};
  if (IsText(cell(kText))) {
    span.name = IdOf(reading, cell(kText).bytes);
  } else if (cell(kTextId).is_integer()) {
    ASSIGN_OR_RETURN(span.name, NameOf(reading, cell(kTextId).integer));
  } else {
    span.name = IdOf(reading, kNoName);
  }
  if (detail_) {
    span.result = DomainOf(cell(kDomain));
    batch_.spans.push_back(span);
    return {};
  }
  batch_.ranges.push_back(
      {.start_ns = span.start_ns, .end_ns = span.end_ns, .process = span.process, .label = span.name});
  if (!nccl_.empty() && cell(kDomain).is_integer() && nccl_.IsNccl(cell(kDomain).integer))
    return AddCommunication(reading, row, span);
  return {};
}

Status RowReader::AddDomain(Reading& reading, const sqlite::Row& row) {
  const auto cell = [&](size_t column) -> const sqlite::Cell& { return row.cells[reading.places[column]]; };
  const int32_t domain = DomainOf(cell(kDomain));
  const int64_t process = cell(kRangeThread).is_integer() ? ProcessOf(cell(kRangeThread).integer) : 0;
  if (domain == 0) return {};
  if (IsText(cell(kText))) {
    sink_.NameDomain(process, domain, cell(kText).bytes);
  } else if (cell(kTextId).is_integer()) {
    ASSIGN_OR_RETURN(const std::string_view name, LookUpString(cell(kTextId).integer));
    sink_.NameDomain(process, domain, name);
  }
  return {};
}

Result<RowReader::NcclCall> RowReader::NcclCallOf(int64_t text_id) {
  using enum CommunicationCall::Kind;
  if (const auto known = calls_.find(text_id); known != calls_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::string_view name, LookUpString(text_id));
  const NcclCall call{.kind = name == "ncclGroupStart" ? kGroupStart
                              : name == "ncclGroupEnd" ? kGroupEnd
                                                       : kOperation,
                      .operation = OperationOf(name)};
  if (calls_.size() == kMaxCachedNames) calls_.clear();
  calls_.emplace(text_id, call);
  return call;
}

Status RowReader::AddCommunication(Reading& reading, const sqlite::Row& row, const Span& span) {
  const auto cell = [&](size_t column) -> const sqlite::Cell& { return row.cells[reading.places[column]]; };
  CommunicationCall call{.start_ns = span.start_ns,
                         .end_ns = span.end_ns,
                         .process = span.process,
                         .thread = static_cast<uint32_t>(span.tid)};
  if (cell(kTextId).is_integer()) {
    ASSIGN_OR_RETURN(const NcclCall known, NcclCallOf(cell(kTextId).integer));
    call.kind = known.kind;
    call.operation = known.operation;
  }
  if (call.kind == CommunicationCall::Kind::kOperation) {
    std::optional<NcclPayload> payload;
    if (IsText(cell(kPayload))) {
      payload = nccl_.DecodeBytes(cell(kPayload).bytes);
    } else if (IsText(cell(kJson))) {
      payload = NcclPayloads::DecodeJson(cell(kJson).bytes);
    } else if (cell(kJsonId).is_integer()) {
      ASSIGN_OR_RETURN(const std::string_view text, LookUpString(cell(kJsonId).integer));
      payload = NcclPayloads::DecodeJson(text);
    }
    if (payload.has_value()) {
      const ProcessGroup group = GroupOfCommunicator(*payload);
      // Only the calls that create a communicator know its size.
      if (communicators_.insert(group.identity).second || group.size > 0) sink_.Group(group);
      if (!payload->is_operation) return {};
      call.group = group.Number();
      call.bytes = payload->bytes;
    }
  }
  batch_.communication.push_back(call);
  return {};
}

Status RowReader::Add(Reading& reading, Kind kind, const Cells& cells) {
  switch (kind) {
    case Kind::kKernel:
      return AddNamedGpu(reading, cells, GpuWork::kKernel, cells.Has(kName) ? kName : kShortName);
    case Kind::kMemcpy:
      AddMemcpy(cells);
      return {};
    case Kind::kMemset:
      AddMemset(cells);
      return {};
    case Kind::kRuntime:
      return detail_ ? AddSpan(reading, cells, SpanKind::kCall) : AddCall(reading, cells);
    case Kind::kOsCall:
      return AddSpan(reading, cells, SpanKind::kOsCall);
    case Kind::kMarker:
      if (detail_)
        ++batch_.others;
      else
        AddMarker(cells);
      return {};
    case Kind::kGraph:
      return AddNamedGpu(reading, cells, GpuWork::kGraph, kGraphId);
    case Kind::kNvtx:
    case Kind::kProcessNames:
    case Kind::kThreadNames:
      return {};  // ReadTexts reads them
    case Kind::kSync:
      if (detail_)
        AddSync(cells);
      else
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

GpuEvent* RowReader::AddGpu(const Cells& cells, GpuWork work) {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  if (!Times(cells, start_ns, end_ns)) return nullptr;
  const int64_t device = cells[kDevice];
  const int64_t stream = cells[kStream];
  if (device < 0 || device > std::numeric_limits<int32_t>::max() || stream < 0 ||
      stream > std::numeric_limits<uint32_t>::max()) {
    sink_.Drop(Dropped::kWrongType, 1);
    return nullptr;
  }
  // Filled where it stays: to copy what was just written in smaller pieces stalls.
  GpuEvent& event = batch_.gpu.emplace_back();
  event.start_ns = start_ns;
  event.end_ns = end_ns;
  event.process = WorkProcess(cells, kGlobalPid);
  event.correlation = CorrelationOf(cells.Or(kCorrelation, kNoCorrelation));
  event.device = static_cast<int32_t>(device);
  event.stream = static_cast<uint32_t>(stream);
  event.work = work;
  if (detail_)
    batch_.gpu_details.push_back({.grid_and_block = {},
                                  .context = cells[kContext],
                                  .registers = cells.If(kRegisters),
                                  .static_shared_bytes = cells.If(kStaticShared),
                                  .dynamic_shared_bytes = cells.If(kDynamicShared),
                                  .graph_node = cells.If(kGraphNode)});
  return &event;
}

Status RowReader::AddNamedGpu(Reading& reading, const Cells& cells, GpuWork work, size_t name_column) {
  GpuEvent* const event = AddGpu(cells, work);
  if (event == nullptr) return {};
  const Result<uint32_t> name = NameOf(reading, cells, name_column);
  if (!name.has_value()) {
    batch_.gpu.pop_back();
    if (detail_) batch_.gpu_details.pop_back();
    return std::unexpected(name.error());
  }
  event->name = *name;
  if (work != GpuWork::kKernel) return {};
  const std::array<int64_t, 6> launch = {cells[kGridX],  cells[kGridY],  cells[kGridZ],
                                         cells[kBlockX], cells[kBlockY], cells[kBlockZ]};
  event->shape = ShapeOf(launch);
  if (detail_) batch_.gpu_details.back().grid_and_block = launch;
  return {};
}

void RowReader::AddSync(const Cells& cells) {
  SyncWait wait{.process = WorkProcess(cells, kSyncPid),
                .correlation = CorrelationOf(cells.Or(kSyncCorrelation, kNoCorrelation)),
                .context = cells[kSyncContext],
                .stream = cells[kSyncStream],
                .device = static_cast<int32_t>(cells[kSyncDevice]),
                .kind = SyncKindOf(cells[kSyncType])};
  if (Times(cells, wait.start_ns, wait.end_ns)) batch_.syncs.push_back(wait);
}

uint32_t RowReader::ThreadOf(const Cells& cells) {
  return static_cast<uint32_t>(cells.Has(kThreadId) ? cells[kThreadId] : cells[kGlobalTid] & kThreadMask);
}

Status RowReader::AddSpan(Reading& reading, const Cells& cells, SpanKind kind) {
  Span span{.process = ProcessOf(cells[kGlobalTid]),
            .tid = static_cast<int32_t>(ThreadOf(cells)),
            .result = static_cast<int32_t>(cells[kResult]),
            .kind = kind,
            .has_result = cells.Has(kResult) ? uint8_t{1} : uint8_t{0}};
  if (!Times(cells, span.start_ns, span.end_ns)) return {};
  if (kind == SpanKind::kCall) span.correlation = CorrelationOf(cells.Or(kCallCorrelation, kNoCorrelation));
  ASSIGN_OR_RETURN(span.name, NameOf(reading, cells, kNameId));
  batch_.spans.push_back(span);
  return {};
}

void RowReader::AddMemcpy(const Cells& cells) {
  GpuEvent* const event = AddGpu(cells, GpuWork::kMemcpy);
  if (event == nullptr) return;
  event->bytes = std::max<int64_t>(0, cells[kBytes]);
  event->copy = CopyKindOf(cells[kCopyKind]);
  event->source = layout_.memory_kind(cells.Or(kSourceKind, -1));
  event->target = layout_.memory_kind(cells.Or(kTargetKind, -1));
}

void RowReader::AddMemset(const Cells& cells) {
  GpuEvent* const event = AddGpu(cells, GpuWork::kMemset);
  if (event == nullptr) return;
  event->bytes = std::max<int64_t>(0, cells[kMemsetBytes]);
  event->target = layout_.memory_kind(cells.Or(kMemoryKind, -1));
}

Status RowReader::AddCall(Reading& reading, const Cells& cells) {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  if (!Times(cells, start_ns, end_ns)) return {};
  ASSIGN_OR_RETURN(const uint32_t name, NameOf(reading, cells, kNameId));
  ApiCall& call = batch_.calls.emplace_back();
  call.start_ns = start_ns;
  call.end_ns = end_ns;
  call.process = ProcessOf(cells[kGlobalTid]);
  call.correlation = CorrelationOf(cells.Or(kCallCorrelation, kNoCorrelation));
  call.name = name;
  call.thread = ThreadOf(cells);
  return {};
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
  if (CheckTimes(time_ns, time_ns, sink_)) batch_.ranges.push_back({.start_ns = time_ns, .end_ns = time_ns});
}

Result<uint32_t> RowReader::NameOf(Reading& reading, const Cells& cells, size_t column) {
  return cells.Has(column) ? NameOf(reading, cells[column]) : sink_.Name(kNoName);
}

uint32_t RowReader::IdOf(const Reading& reading, std::string_view name) {
  if (!reading.labels) return sink_.Name(name);
  return name == kNoName ? Range::kNoLabel : sink_.Label(name);
}

Result<uint32_t> RowReader::NameOf(Reading& reading, int64_t id) {
  Recent& recent = reading.recent[static_cast<uint64_t>(id) % reading.recent.size()];
  if (recent.known && id == recent.id) return recent.name;
  const auto known = reading.names.find(id);
  uint32_t name = 0;
  if (known != reading.names.end()) {
    name = known->second;
  } else {
    if (reading.name_prefix.empty()) {
      ASSIGN_OR_RETURN(const std::string_view text, LookUpString(id));
      name = IdOf(reading, text);
    } else {
      name = sink_.Name(fmt::format("{}{}", reading.name_prefix, id));
    }
    if (reading.names.size() == kMaxCachedNames) reading.names.clear();
    reading.names.emplace(id, name);
  }
  recent = {.id = id, .name = name, .known = true};
  return name;
}

Result<std::string_view> RowReader::LookUpString(int64_t string_id) {
  if (string_reader_ == nullptr) {
    ASSIGN_OR_RETURN(string_reader_, strings_.MakeReader());
  }
  const std::optional<int64_t> rowid = strings_.RowidOf(string_id);
  if (string_reader_ == nullptr || !rowid.has_value()) return kNoName;
  sqlite::Row row;
  ASSIGN_OR_RETURN(const bool found, string_reader_->Find(*rowid, row));
  if (!found || !IsText(row.cells[0])) return kNoName;
  if (!layout_.mangled) return row.cells[0].bytes;
  demangled_ = Demangle(std::string(row.cells[0].bytes));
  return demangled_;
}

}  // namespace gpusonde::importers::activities
