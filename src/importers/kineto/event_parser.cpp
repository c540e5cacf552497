// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/event_parser.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <set>
#include <vector>

#include "base/utf8.h"
#include "importers/decimal.h"
#include "importers/kineto/event_filter.h"
#include "importers/kineto/names.h"

namespace gpusonde::importers::kineto {
namespace {

namespace ondemand = simdjson::ondemand;

// As many events as stay in the first-level cache.
constexpr size_t kEventsBatch = 256;
static_assert(EventFilter::kPadding >= simdjson::SIMDJSON_PADDING);

// Elements of "grid" and "block".
using Extents = std::array<int64_t, 3>;

// The members of an event that are read, as raw JSON.
struct Event {
  std::string_view phase, name, start, duration, device, stream, pid, tid;
  std::string_view correlation, bytes, copy;
  // Of kernels of collectives.
  std::string_view group_name, group_description, group_ranks, group_size, sequence;
  std::string_view collective, elements_in, elements_out, element_type;
  // In traces of XLA.
  std::string_view copy_details, kernel_details;
  bool is_step = false;
  // In detail.
  std::string_view context, registers, shared_memory, graph_node, argument_name;
  // Of allocations.
  std::string_view address, allocated_bytes, device_id, device_type;
  Category kind = Category::kOther;
  Extents grid{}, block{};
};

std::string_view Token(ondemand::value value) { return value.raw_json_token(); }

Extents ReadExtents(ondemand::value value) {
  Extents extents{};
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return extents;
  size_t i = 0;
  for (auto element : array) {
    ondemand::value number;
    if (element.get(number) != simdjson::SUCCESS) return extents;
    if (i < extents.size()) extents[i++] = ParseWhole(Token(number)).value_or(0);
  }
  return extents;
}

// "128,1,1"
Extents ReadXlaExtents(std::string_view text) {
  Extents extents{};
  for (int64_t& extent : extents) {
    const std::string_view number = text.substr(0, text.find(','));
    extent = ParseWhole(number).value_or(0);
    text.remove_prefix(std::min(text.size(), number.size() + 1));
  }
  return extents;
}

// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/) of texts, each with an end.
uint64_t HashOf(std::initializer_list<std::string_view> texts) {
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001B3; };
  for (const std::string_view text : texts) {
    for (const char c : text) add(static_cast<unsigned char>(c));
    add(0);
  }
  return hash;
}

// Of a thread or stream: its number, else a hash of its name, so that those without a number stay apart.
uint32_t TrackOf(std::string_view token) {
  if (const std::optional<int64_t> number = TrackNumber(token); number.has_value())
    return static_cast<uint32_t>(*number);
  const std::string_view name = Unquote(token);
  return name.empty() ? 0 : static_cast<uint32_t>(HashOf({name}) >> 33);
}

// Whether PyTorch's allocator reports memory of a device, by the type that c10::DeviceType numbers: 0 is the
// host's.
bool IsAllocation(const Event& event) {
  return event.name == "[memory]" && ParseWhole(event.device_type).value_or(0) > 0;
}

// "default_pg [0, 1]": what people call the group, else its name, and its ranks.
std::string LabelOf(const Event& event) {
  const bool described = !event.group_description.empty() && event.group_description != "undefined";
  std::string label;
  Unescape(described ? event.group_description : event.group_name, label);
  if (!event.group_ranks.empty()) label += fmt::format(" {}", event.group_ranks);
  if (label.size() <= ProcessGroup::kMaxLabelBytes) return label;
  constexpr std::string_view kMore = "…";
  return label.substr(0, ProcessGroup::kMaxLabelBytes - kMore.size()).append(kMore);
}

// What a rank puts in or gets out of a collective, whichever is more: nccl-tests' sizes. 0 if nothing moves.
int64_t MessageBytes(const Event& event) {
  const auto elements = [](std::string_view number) {
    return number.empty() ? std::optional<int64_t>(0) : ParseWhole(number);
  };
  const std::optional<int64_t> in = elements(event.elements_in), out = elements(event.elements_out);
  if (!in.has_value() || !out.has_value() || *in < 0 || *out < 0) return Message::kInvalid;
  int64_t bytes = 0;
  const int64_t size = ElementBytes(event.element_type);
  if (__builtin_mul_overflow(std::max(*in, *out), size, &bytes) || bytes > Message::kMaxBytes ||
      (size == 0 && std::max(*in, *out) > 0))
    return Message::kInvalid;
  return bytes;
}

simdjson::error_code ReadArguments(ondemand::value value, Event& event) {
  ondemand::object arguments;
  if (value.get_object().get(arguments) != simdjson::SUCCESS)
    return simdjson::SUCCESS;  // no object: nothing to read
  for (auto member : arguments) {
    ondemand::field field;
    if (const auto error = std::move(member).get(field); error != simdjson::SUCCESS) return error;
    const char* const key = field.key().raw();
    switch (key[0]) {
      case 'b':
        if (KeyIs(key, "block"))
          event.block = ReadExtents(field.value());
        else if (KeyIs(key, "bytes"))
          event.bytes = Token(field.value());
        break;
      case 'c':
        // The latter two are XLA's, and those of converters of other traces.
        if (KeyIs(key, "correlation") || KeyIs(key, "correlation_id") || KeyIs(key, "correlationId"))
          event.correlation = Token(field.value());
        else if (KeyIs(key, "context"))
          event.context = Token(field.value());
        break;
      case 'd':
        if (KeyIs(key, "device"))
          event.device = Token(field.value());
        else if (KeyIs(key, "dtype"))
          event.element_type = Unquote(Token(field.value()));
        break;
      case 'A':
        if (KeyIs(key, "Addr")) event.address = Token(field.value());
        break;
      case 'B':
        if (KeyIs(key, "Bytes")) event.allocated_bytes = Token(field.value());
        break;
      case 'D':
        if (KeyIs(key, "Device Id"))
          event.device_id = Token(field.value());
        else if (KeyIs(key, "Device Type"))
          event.device_type = Token(field.value());
        break;
      case 'C':
        if (KeyIs(key, "Collective name")) event.collective = Unquote(Token(field.value()));
        break;
      case 'I':
        if (KeyIs(key, "In msg nelems")) event.elements_in = Token(field.value());
        break;
      case 'O':
        if (KeyIs(key, "Out msg nelems")) event.elements_out = Token(field.value());
        break;
      case 'G':
        if (KeyIs(key, "Group size")) event.group_size = Token(field.value());
        break;
      case 'P':
        if (KeyIs(key, "Process Group Name"))
          event.group_name = Unquote(Token(field.value()));
        else if (KeyIs(key, "Process Group Ranks"))
          event.group_ranks = Unquote(Token(field.value()));
        else if (KeyIs(key, "Process Group Description"))
          event.group_description = Unquote(Token(field.value()));
        break;
      case 'S':
        if (KeyIs(key, "Seq")) event.sequence = Token(field.value());
        break;
      case 'g':
        if (KeyIs(key, "grid"))
          event.grid = ReadExtents(field.value());
        else if (KeyIs(key, "graph node id"))
          event.graph_node = Token(field.value());
        break;
      case 'k':
        if (KeyIs(key, "kernel_details")) event.kernel_details = Unquote(Token(field.value()));
        break;
      case 'm':
        if (KeyIs(key, "memcpy_details")) event.copy_details = Unquote(Token(field.value()));
        break;
      case 'n':
        if (KeyIs(key, "name")) event.argument_name = Unquote(Token(field.value()));
        break;
      case 'r':
        if (KeyIs(key, "registers per thread")) event.registers = Token(field.value());
        break;
      case 's':
        if (KeyIs(key, "stream"))
          event.stream = Token(field.value());
        else if (KeyIs(key, "shared memory"))
          event.shared_memory = Token(field.value());
        else if (KeyIs(key, "step_num"))
          event.is_step = true;
        break;
      default:
        break;
    }
  }
  return simdjson::SUCCESS;
}

simdjson::error_code ReadEvent(ondemand::object object, Reading reading, Event& event) {
  bool category_known = false;
  for (auto member : object) {
    ondemand::field field;
    if (const auto error = std::move(member).get(field); error != simdjson::SUCCESS) return error;
    const char* const key = field.key().raw();
    switch (key[0]) {
      case 'a':
        if (!KeyIs(key, "args") || (category_known && !HasArguments(event.kind))) break;
        if (const auto error = ReadArguments(field.value(), event); error != simdjson::SUCCESS) return error;
        break;
      case 'c':
        if (!KeyIs(key, "cat")) break;
        event.kind = CategoryOf(Unquote(Token(field.value())));
        // Most events are operators and flows, of which nothing more is needed: skip the rest.
        if (IsOnlyCounted(event.kind, reading)) {
          event.kind = Category::kOther;
          return simdjson::SUCCESS;
        }
        category_known = true;
        break;
      case 'd':
        if (KeyIs(key, "dur")) event.duration = Token(field.value());
        break;
      case 'n':
        if (KeyIs(key, "name")) event.name = Unquote(Token(field.value()));
        break;
      case 'p':
        if (KeyIs(key, "ph"))
          event.phase = Unquote(Token(field.value()));
        else if (KeyIs(key, "pid"))
          event.pid = Token(field.value());
        break;
      case 't':
        if (KeyIs(key, "ts"))
          event.start = Token(field.value());
        else if (KeyIs(key, "tid"))
          event.tid = Token(field.value());
        break;
      default:
        break;
    }
  }
  if (event.device.empty()) event.device = event.pid;
  if (event.stream.empty()) event.stream = event.tid;
  return simdjson::SUCCESS;
}

}  // namespace

struct EventParser::State {
  State(EventSink& to, Reading what, std::shared_ptr<const XlaTracks> tracks)
      : sink(to),
        reading(what),
        detail(what != Reading::kForAnalysis),
        xla(std::move(tracks)),
        filter(what) {}

  // Gives an event of a trace of XLA the category that it lacks.
  void Categorize(Event& event) const;
  void Add(const Event& event);
  void AddName(const Event& event);
  void AddSync(const Event& event, int64_t start_ns, int64_t end_ns);
  void AddSpan(const Event& event, SpanKind kind, int64_t start_ns, int64_t end_ns);
  void AddGpu(const Event& event, int64_t start_ns, int64_t end_ns);
  void AddCall(const Event& event, int64_t start_ns, int64_t end_ns);
  void AddAllocation(const Event& event);
  // GpuEvent::collective of a kernel in a process group.
  uint32_t CollectiveOf(const Event& event);
  void AddMessage(const Event& event, const GpuEvent& kernel);
  Status Run(std::string_view text);
  std::string_view Text(std::string_view quoted_text);
  uint32_t NameOf(std::string_view quoted_text) { return sink.Name(Text(quoted_text)); }

  EventSink& sink;
  Reading reading;
  bool detail;
  std::shared_ptr<const XlaTracks> xla;
  ondemand::parser parser;
  EventFilter filter;
  std::string unescaped;
  EventBatch batch;
  std::set<uint64_t> groups;  // whose identity the sink knows
};

EventParser::EventParser(EventSink& sink, Reading reading, std::shared_ptr<const XlaTracks> xla)
    : state_(std::make_unique<State>(sink, reading, std::move(xla))) {}
EventParser::~EventParser() = default;

void EventParser::State::Categorize(Event& event) const {
  if (event.kind != Category::kOther || event.phase != "X") return;
  const int64_t pid = ParseWhole(event.pid).value_or(-1);
  Category kind = Category::kOther;
  if (const auto* const stream = xla->FindStream(pid, ParseWhole(event.tid).value_or(-1));
      stream != nullptr) {
    event.device = stream->device;
    event.stream = stream->number;
    kind = event.name.starts_with("Memcpy")   ? Category::kMemcpy
           : event.name.starts_with("Memset") ? Category::kMemset
                                              : Category::kKernel;
    if (!event.kernel_details.empty()) {
      event.registers = XlaDetail(event.kernel_details, "regs:");
      event.grid = ReadXlaExtents(XlaDetail(event.kernel_details, "grid:"));
      event.block = ReadXlaExtents(XlaDetail(event.kernel_details, "block:"));
    }
  } else if (xla->IsHost(pid)) {
    kind = event.is_step           ? Category::kAnnotation
           : IsApiName(event.name) ? Category::kApi
                                   : Category::kOperator;
  }
  if (!IsOnlyCounted(kind, reading)) event.kind = kind;
}

// Valid until the next call.
std::string_view EventParser::State::Text(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return text;
  unescaped.clear();
  Unescape(text, unescaped);
  return unescaped;
}

uint32_t EventParser::State::CollectiveOf(const Event& event) {
  const std::optional<int64_t> sequence = ParseWhole(event.sequence);
  ProcessGroup group{.size = ParseWhole(event.group_size).value_or(0),
                     .numbered = sequence.value_or(-1) >= 0};
  // Groups of the same name may have different ranks, and sends are not numbered like collectives.
  group.identity = HashOf({event.group_name, event.group_ranks, group.numbered ? "numbered" : ""});
  if (groups.insert(group.identity).second) {
    group.label = LabelOf(event);
    sink.Group(group);
  }
  return PackCollective(group.Number(), static_cast<uint64_t>(std::max<int64_t>(0, sequence.value_or(0))));
}

void EventParser::State::AddMessage(const Event& event, const GpuEvent& kernel) {
  Message message{.start_ns = kernel.start_ns,
                  .end_ns = kernel.end_ns,
                  .process = kernel.process,
                  .device = kernel.device,
                  .stream = kernel.stream,
                  .bytes = MessageBytes(event),
                  .operation = OperationOf(event.collective)};
  if (message.bytes != 0 && message.operation != Operation::kUnknown) batch.messages.push_back(message);
}

void EventParser::State::AddGpu(const Event& event, int64_t start_ns, int64_t end_ns) {
  GpuEvent gpu_event{.start_ns = start_ns, .end_ns = end_ns};
  gpu_event.correlation = ReadCorrelation(event.correlation);
  const std::optional<int64_t> device = TrackNumber(event.device);
  if (device.value_or(0) < 0 || device.value_or(0) > std::numeric_limits<int32_t>::max()) {
    sink.Drop(Dropped::kWrongType, 1);
    return;
  }
  gpu_event.device = static_cast<int32_t>(device.value_or(0));
  gpu_event.stream = TrackOf(event.stream);
  gpu_event.bytes = std::max<int64_t>(0, ParseWhole(event.bytes).value_or(0));
  if (event.kind == Category::kKernel) {
    gpu_event.name = NameOf(event.name);
    gpu_event.shape = ShapeOf(
        {event.grid[0], event.grid[1], event.grid[2], event.block[0], event.block[1], event.block[2]});
    if (!event.group_name.empty()) gpu_event.collective = CollectiveOf(event);
    if (!event.collective.empty()) AddMessage(event, gpu_event);
  } else {
    gpu_event.work = event.kind == Category::kMemcpy ? GpuWork::kMemcpy : GpuWork::kMemset;
    DescribeMemory(event.name, gpu_event);
    if (!event.copy_details.empty()) DescribeXlaCopy(event.copy_details, gpu_event);
  }
  batch.gpu.push_back(gpu_event);
  if (!detail) return;
  batch.gpu_details.push_back({.grid_and_block = {event.grid[0], event.grid[1], event.grid[2], event.block[0],
                                                  event.block[1], event.block[2]},
                               .context = ParseWhole(event.context).value_or(0),
                               .registers = ParseWhole(event.registers),
                               // Kineto adds static and dynamic memory.
                               .static_shared_bytes = ParseWhole(event.shared_memory),
                               .dynamic_shared_bytes = std::nullopt,
                               .graph_node = ParseWhole(event.graph_node)});
}

void EventParser::State::AddSync(const Event& event, int64_t start_ns, int64_t end_ns) {
  batch.syncs.push_back({.start_ns = start_ns,
                         .end_ns = end_ns,
                         .process = 0,
                         .correlation = ReadCorrelation(event.correlation),
                         .context = ParseWhole(event.context).value_or(0),
                         .stream = TrackNumber(event.stream).value_or(0),
                         .device = static_cast<int32_t>(TrackNumber(event.device).value_or(0)),
                         .kind = SyncKindOf(event.name)});
}

void EventParser::State::AddSpan(const Event& event, SpanKind kind, int64_t start_ns, int64_t end_ns) {
  batch.spans.push_back(
      {.start_ns = start_ns,
       .end_ns = end_ns,
       .process = PidOf(ParseWhole(event.pid).value_or(0)),
       .correlation = kind == SpanKind::kCall ? ReadCorrelation(event.correlation) : kNoCorrelation,
       .tid = static_cast<int32_t>(TrackOf(event.tid)),
       .name = NameOf(event.name),
       .kind = kind});
}

void EventParser::State::AddName(const Event& event) {
  const int64_t process = PidOf(ParseWhole(event.pid).value_or(0));
  if (event.name == "process_name")
    sink.NameProcess(process, Text(event.argument_name));
  else if (event.name == "thread_name")
    sink.NameThread(process, static_cast<int32_t>(TrackOf(event.tid)), Text(event.argument_name));
}

void EventParser::State::AddCall(const Event& event, int64_t start_ns, int64_t end_ns) {
  batch.calls.push_back({.start_ns = start_ns,
                         .end_ns = end_ns,
                         .process = 0,
                         .correlation = ReadCorrelation(event.correlation),
                         .name = NameOf(event.name),
                         .thread = TrackOf(event.tid)});
}

void EventParser::State::AddAllocation(const Event& event) {
  constexpr int64_t kNoMagnitude = std::numeric_limits<int64_t>::min();
  const std::optional<int64_t> time_ns = ParseMicroseconds(event.start);
  if (!time_ns.has_value()) return sink.Drop(Dropped::kBadTime, 1);
  if (!CheckTimes(*time_ns, *time_ns, sink)) return;
  const std::optional<int64_t> bytes = ParseWhole(event.allocated_bytes);
  const std::optional<int64_t> device = ParseWhole(event.device_id);
  if (bytes.value_or(kNoMagnitude) == kNoMagnitude || device.value_or(-1) < 0 ||
      *device > std::numeric_limits<int32_t>::max())
    return sink.Drop(Dropped::kWrongType, 1);
  batch.allocations.push_back({.time_ns = *time_ns,
                               .process = PidOf(ParseWhole(event.pid).value_or(0)),
                               .address = ParseWhole(event.address).value_or(0),
                               .bytes = *bytes,
                               .tid = static_cast<int32_t>(TrackOf(event.tid)),
                               .device = static_cast<int32_t>(*device)});
}

void EventParser::State::Add(const Event& event) {
  if (event.kind == Category::kInstant && IsAllocation(event)) return AddAllocation(event);
  if (event.phase == "B" && event.kind != Category::kOther) return sink.Drop(Dropped::kBeginEnd, 1);
  if (event.phase != "X" || event.kind == Category::kOther) {
    if (reading == Reading::kAll && event.phase == "M") AddName(event);
    ++batch.others;
    return;
  }
  const std::optional<int64_t> start_ns = ParseMicroseconds(event.start);
  const std::optional<int64_t> duration_ns = ParseMicroseconds(event.duration);
  if (!start_ns.has_value() || !duration_ns.has_value()) return sink.Drop(Dropped::kBadTime, 1);
  const int64_t end_ns = *start_ns + *duration_ns;
  if (!CheckTimes(*start_ns, end_ns, sink)) return;
  switch (event.kind) {
    case Category::kKernel:
    case Category::kMemcpy:
    case Category::kMemset:
      return AddGpu(event, *start_ns, end_ns);
    case Category::kApi:
      if (detail) return AddSpan(event, SpanKind::kCall, *start_ns, end_ns);
      return AddCall(event, *start_ns, end_ns);
    case Category::kAnnotation:
      if (detail) return AddSpan(event, SpanKind::kAnnotation, *start_ns, end_ns);
      batch.ranges.push_back(
          {.start_ns = *start_ns, .end_ns = end_ns, .process = 0, .label = sink.Label(Text(event.name))});
      return;
    case Category::kOperator:
      return AddSpan(event, SpanKind::kOperator, *start_ns, end_ns);
    case Category::kPython:
      return AddSpan(event, SpanKind::kPython, *start_ns, end_ns);
    case Category::kSync:
      return AddSync(event, *start_ns, end_ns);
    case Category::kInstant:
    case Category::kOther:
      return;
  }
}

// `text` may be read up to EventFilter::kPadding bytes beyond its end.
Status EventParser::State::Run(std::string_view text) {
  const auto corrupt = [&](simdjson::error_code error, size_t at) {
    return Fail(ErrorCode::kCorrupt, fmt::format("byte {} of the events: {}", filter.OriginOf(at),
                                                 simdjson::error_message(error)));
  };
  const simdjson::padded_string_view padded(text.data(), text.size(), text.size() + EventFilter::kPadding);
  // With room for later texts, which may be a little longer: what is allocated anew is zeroed anew, by a
  // fault for each page.
  constexpr size_t kRoom = size_t{512} << 10;
  if (text.size() > parser.capacity())
    if (const auto error = parser.allocate(text.size() + std::min(text.size(), kRoom));
        error != simdjson::SUCCESS)
      return corrupt(error, 0);
  ondemand::document document;
  if (const auto error = parser.iterate(padded).get(document); error == simdjson::UTF8_ERROR) {
    // Names may be any bytes; invalid characters become U+FFFD.
    std::string valid = ToUtf8(text);
    if (valid == text) return corrupt(error, 0);
    valid.reserve(valid.size() + EventFilter::kPadding);
    return Run(valid);
  } else if (error == simdjson::UNESCAPED_CHARS) {
    // Names that no one escaped.
    std::string escaped = EscapeControls(text);
    if (escaped == text) return corrupt(error, 0);
    escaped.reserve(escaped.size() + EventFilter::kPadding);
    return Run(escaped);
  } else if (error != simdjson::SUCCESS) {
    return corrupt(error, 0);
  }
  ondemand::array events;
  if (const auto error = document.get_array().get(events); error != simdjson::SUCCESS)
    return corrupt(error, 0);
  for (auto element : events) {
    ondemand::value value;
    if (const auto error = std::move(element).get(value); error != simdjson::SUCCESS)
      return corrupt(error, 0);
    ondemand::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) {
      sink.Drop(Dropped::kMalformed, 1);
      continue;
    }
    Event event;
    if (const auto error = ReadEvent(object, reading, event); error != simdjson::SUCCESS) {
      const char* where = nullptr;
      const bool known = document.current_location().get(where) == simdjson::SUCCESS;
      return corrupt(error, known ? static_cast<size_t>(where - text.data()) : 0);
    }
    if (!xla->empty()) Categorize(event);
    Add(event);
    if (batch.size() >= kEventsBatch) batch.Flush(sink);
  }
  return {};
}

Status EventParser::Parse(const std::string& events, std::span<const uint32_t> ends) {
  State& state = *state_;
  const std::string_view left = state.filter.Filter(events, ends);
  state.batch.others += state.filter.left_out();
  Status done = state.Run(left);
  state.batch.Flush(state.sink);  // also the events before one that failed
  return done;
}

}  // namespace gpusonde::importers::kineto
