// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The output of importers: the events of a trace in file order, which may be any, with the file's own clock
// in ns.
namespace gpusonde::importers {

// A graph is a launch of a CUDA graph that was traced as a whole: the trace doesn't say what ran in it.
enum class GpuWork : uint8_t { kKernel, kMemcpy, kMemset, kGraph };

// How the names of such graphs begin; their number follows.
inline constexpr std::string_view kGraphPrefix = "CUDA graph ";

// Whether such work has a name.
constexpr bool IsNamed(GpuWork work) { return work == GpuWork::kKernel || work == GpuWork::kGraph; }

enum class CopyKind : uint8_t {
  kUnknown,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kPeerToPeer,
  kHostToHost
};
enum class MemoryKind : uint8_t { kUnknown, kPageable, kPinned, kDevice, kManaged };

// As in the tables: htod, dtoh, dtod, ptop, htoh, unknown; pageable, pinned, device, managed, unknown.
std::string_view Name(CopyKind kind);
std::string_view Name(MemoryKind kind);

// A process's number in its own system: the lowest 24 bits; above are the machine's and its virtual
// machine's.
constexpr int64_t PidOf(int64_t process) { return process & 0xFFFFFF; }

// The correlation of an event that has none.
inline constexpr int64_t kNoCorrelation = -1;

// The correlation that a number of a trace is.
constexpr int64_t CorrelationOf(int64_t number) { return number >= 0 ? number : kNoCorrelation; }

// A process group of a distributed job, whose ranks run collectives together.
struct ProcessGroup {
  uint64_t identity = 0;  // a hash of its name and ranks, equal in the traces of all its ranks
  int64_t size = 0;       // in ranks; 0 if the trace doesn't say; of several sizes the largest counts
  bool numbered = false;  // its collectives have sequence numbers
  // For people, any bytes, at most kMaxLabelBytes; "" if the trace has no name. Of several the smallest
  // counts.
  std::string label;

  static constexpr size_t kMaxLabelBytes = 96;

  bool operator==(const ProcessGroup&) const = default;
  // Its number within a trace: not 0, and different for nearly all groups of a trace.
  uint16_t Number() const { return static_cast<uint16_t>(1 + identity % 0xFFFF); }
};

// A collective of a group: the group's number, and the lowest 16 bits of the sequence number. Not 0.
constexpr uint32_t PackCollective(uint16_t group, uint64_t sequence) {
  return uint32_t{group} << 16 | static_cast<uint16_t>(sequence);
}
constexpr uint16_t GroupOf(uint32_t collective) { return static_cast<uint16_t>(collective >> 16); }
constexpr uint16_t SequenceOf(uint32_t collective) { return static_cast<uint16_t>(collective); }

// What the ranks of a group do together, or two of them.
enum class Operation : uint8_t {
  kUnknown,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSendReceive
};

// As in the JSON: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter,
// send_receive, unknown.
std::string_view Name(Operation operation);

// The operation that a name of PyTorch's or NCCL's means, such as "_allgather_base" or "ncclAllGather".
Operation OperationOf(std::string_view name);

// What a communication kernel moved; says so beside its GpuEvent, whose times, process, device and stream it
// has.
struct Message {
  static constexpr int64_t kInvalid = -1;
  static constexpr int64_t kMaxBytes = int64_t{1} << 50;

  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t process = 0;
  int32_t device = 0;
  uint32_t stream = 0;
  // The larger of what the rank puts in and gets out, 1 to kMaxBytes; kInvalid if what the trace says is
  // neither.
  int64_t bytes = 0;
  Operation operation = Operation::kUnknown;

  auto operator<=>(const Message&) const = default;
};

// Work on a device.
struct GpuEvent {
  int64_t start_ns = 0;
  int64_t end_ns = 0;  // not before start_ns
  int64_t process =
      0;  // the launching process, unique within the trace, see PidOf; 0 if the format doesn't have it
  int64_t correlation = kNoCorrelation;  // joins its launch, within the process; not negative
  int64_t bytes = 0;                     // of copies and sets
  int32_t device = 0;
  uint32_t stream = 0;
  uint32_t name = 0;   // of kernels and graphs: an id that EventSink::Name gave
  uint32_t shape = 0;  // of kernels: a hash of grid and block
  // Of kernels that run a collective of a process group: PackCollective, after EventSink::Group; else 0.
  uint32_t collective = 0;
  GpuWork work = GpuWork::kKernel;
  CopyKind copy = CopyKind::kUnknown;
  MemoryKind source = MemoryKind::kUnknown;
  MemoryKind target = MemoryKind::kUnknown;
};

// A call of the CUDA or HIP runtime or driver.
struct ApiCall {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t process = 0;
  int64_t correlation = kNoCorrelation;
  uint32_t name = 0;
  uint32_t thread = 0;  // within the process; 0 if unknown
};

// An annotated range of a thread (NVTX, user annotations).
struct Range {
  static constexpr uint32_t kNoLabel = ~uint32_t{0};

  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t process = 0;
  uint32_t label = kNoLabel;  // id that EventSink::Label gave
};

// A call of NCCL by a thread. Operations in a group of calls are launched when the outermost group ends.
struct CommunicationCall {
  enum class Kind : uint8_t { kOperation, kGroupStart, kGroupEnd };

  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t process = 0;
  uint32_t thread = 0;  // as ApiCall::thread
  uint16_t group = 0;   // of operations: ProcessGroup::Number of the communicator; 0 if the trace doesn't say
  Kind kind = Kind::kOperation;
  Operation operation = Operation::kUnknown;
  // Of operations, as NCCL counts: what this rank sends to each or to all; 0 if the trace doesn't say. At
  // most Message::kMaxBytes.
  int64_t bytes = 0;

  auto operator<=>(const CommunicationCall&) const = default;
};

// What is read of events only in detail (OpenOptions::detail), for recordings made from traces.
// One of each GPU event, in the same order.
struct GpuDetail {
  std::array<int64_t, 6> grid_and_block{};
  int64_t context = 0;
  std::optional<int64_t> registers;  // per thread
  std::optional<int64_t> static_shared_bytes;
  std::optional<int64_t> dynamic_shared_bytes;
  std::optional<int64_t> graph_node;
};

// Ordered as they nest: of spans of a thread with the same times an earlier kind surrounds a later one.
enum class SpanKind : uint8_t {
  kPython,
  kAnnotation,
  kNvtxPushPop,
  kNvtxStartEnd,
  kOperator,
  kCall,
  kOsCall
};

// What a thread did from one time to another; calls and ranges too.
struct Span {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t process = 0;
  int64_t correlation = kNoCorrelation;  // of calls
  int32_t tid = 0;
  // Of calls, where the trace has it; of NVTX ranges the number of their domain in the process, 0 without
  // one.
  int32_t result = 0;
  uint32_t name = 0;
  SpanKind kind = SpanKind::kCall;
  uint8_t has_end = 1;     // else the range was still open when the trace ended, and end_ns is its start
  uint8_t has_result = 0;  // not bools, as these are sorted in files
  uint8_t unused = 0;
};
static_assert(sizeof(Span) == 48);

enum class SyncKind : uint8_t { kUnknown, kEvent, kStreamWait, kStream, kContext };

// As in the table syncs: event, stream_wait, stream, context, unknown.
std::string_view Name(SyncKind kind);

// A wait for a device, as CUPTI reports it beside the call that waits.
struct SyncWait {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t process = 0;
  int64_t correlation = kNoCorrelation;
  int64_t context = 0;
  int64_t stream = 0;
  int32_t device = 0;
  SyncKind kind = SyncKind::kUnknown;
};

// A launch that a profiler measured in isolation by replaying it (Nsight Compute): its start time means
// nothing.
struct MeasuredLaunch {
  std::optional<int64_t> duration_ns;  // not negative
  int64_t process = 0;                 // as GpuEvent::process
  int32_t device = 0;
  uint32_t name = 0;
  uint32_t shape = 0;
};

// One of its metrics.
struct MetricValue {
  uint32_t metric = 0;  // ids that EventSink::Name gave
  uint32_t unit = 0;
  int64_t value = 0;  // in 10^-ncu::DecimalsOf(unit) of the unit
};

// Memory of a device that an allocator gave to a program, or got back from it.
struct Allocation {
  int64_t time_ns = 0;
  int64_t process = 0;
  int64_t address = 0;
  int64_t bytes = 0;  // negative: released
  int32_t tid = 0;
  int32_t device = 0;
};

// Why an event of a trace is not in the results.
enum class Dropped : uint8_t {
  kBadTime,           // no start or end, or one that is no number or beyond 2^61 ns
  kNegativeDuration,  // ends before it starts
  kWrongType,         // a column or value of a type that it never has
  kMalformed,         // a row or event that doesn't parse
  kNotCollected,      // the profiler could not collect its times
  kBeginEnd,          // a begin whose end, another event, is not there
};
inline constexpr std::array kDroppedNames = {
    std::string_view("bad_time"),  std::string_view("negative_duration"), std::string_view("wrong_type"),
    std::string_view("malformed"), std::string_view("not_collected"),     std::string_view("begin_end")};

// Times beyond this are refused, so that differences and sums of a few can't overflow.
inline constexpr int64_t kMaxTimeNs = int64_t{1} << 61;

struct EventBatch;

// Receives the events of one thread's shards. Importers pass spans of up to a few thousand events, which are
// valid only during the call.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // The id of a name, any bytes; the same for the same bytes.
  virtual uint32_t Name(std::string_view name) = 0;
  // The id of what names of ranges have in common that differ only in numbers.
  virtual uint32_t Label(std::string_view /*name*/) { return Range::kNoLabel; }
  // A process group that later events name by its number; at least once in each thread.
  virtual void Group(const ProcessGroup& group) = 0;
  virtual void Gpu(std::span<const GpuEvent> events) = 0;
  virtual void Api(std::span<const ApiCall> calls) = 0;
  virtual void Ranges(std::span<const Range> ranges) = 0;
  virtual void Communication(std::span<const CommunicationCall> /*calls*/) {}
  virtual void Messages(std::span<const Message> /*messages*/) {}
  virtual void Launch(const MeasuredLaunch& launch, std::span<const MetricValue> metrics) = 0;
  // Counts text values of metrics, which the results don't include.
  virtual void MetricTexts(int64_t count) = 0;
  // Counts events that are not analysed: operators, flows, metadata.
  virtual void Other(int64_t count) = 0;
  virtual void Drop(Dropped reason, int64_t count) = 0;

  // In detail these replace Gpu, Api and Ranges.
  virtual void Detailed(const EventBatch& /*batch*/) {}
  virtual void NameProcess(int64_t /*process*/, std::string_view /*name*/) {}
  virtual void NameThread(int64_t /*process*/, int32_t /*tid*/, std::string_view /*name*/) {}
  virtual void NameDomain(int64_t /*process*/, int32_t /*domain*/, std::string_view /*name*/) {}
};

// Batches events for a sink: a virtual call for each would cost more than reading it.
struct EventBatch {
  std::vector<GpuEvent> gpu;
  std::vector<ApiCall> calls;
  std::vector<Range> ranges;
  std::vector<CommunicationCall> communication;
  std::vector<Message> messages;  // at most one for each GPU event
  int64_t others = 0;             // only counted
  // In detail; then there are neither calls nor ranges.
  std::vector<GpuDetail> gpu_details;
  std::vector<Span> spans;
  std::vector<SyncWait> syncs;
  std::vector<Allocation> allocations;

  size_t size() const {
    return gpu.size() + calls.size() + ranges.size() + spans.size() + syncs.size() + allocations.size();
  }
  // Passes all events to the sink and empties the batch.
  void Flush(EventSink& sink);
};

// Whether the times are valid; else counts the event as dropped.
inline bool CheckTimes(int64_t start_ns, int64_t end_ns, EventSink& sink) {
  if (start_ns < -kMaxTimeNs || start_ns > kMaxTimeNs || end_ns < -kMaxTimeNs || end_ns > kMaxTimeNs) {
    sink.Drop(Dropped::kBadTime, 1);
    return false;
  }
  if (end_ns < start_ns) {
    sink.Drop(Dropped::kNegativeDuration, 1);
    return false;
  }
  return true;
}

// A hash of grid and block: equal for equal launches, different for nearly all others.
inline uint32_t ShapeOf(const std::array<int64_t, 6>& grid_and_block) {
  // Multilinear, so that the products don't wait for each other (Lemire and Kaser 2014, section 3); the
  // multipliers are odd and without pattern.
  constexpr std::array<uint64_t, 6> kFactors = {0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F,
                                                0x165667B19E3779F9, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53};
  uint64_t hash = 0;
  for (size_t i = 0; i < kFactors.size(); ++i) hash += static_cast<uint64_t>(grid_and_block[i]) * kFactors[i];
  return static_cast<uint32_t>(hash >> 32);
}

}  // namespace gpusonde::importers
