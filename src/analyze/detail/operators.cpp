// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/operators.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "analyze/stats/bounded_table.h"
#include "analyze/timeline/launch_join.h"
#include "model/span_name.h"

namespace gpusonde::analyze {

using importers::Span;
using importers::SpanKind;

void OperatorTable::AddKernel(const Key& key, Sums& row, uint32_t kernel, int64_t duration_ns) {
  const auto known = row.kernels.find(kernel);
  if (known != row.kernels.end()) return known->second.Add(duration_ns);
  if (limit_ != std::numeric_limits<uint64_t>::max() && HashOf(key, kernel) > limit_)
    kernel = names_.Add(NameTable::kOther);
  const auto [added, is_new] = row.kernels.try_emplace(kernel);
  added->second.Add(duration_ns);
  if (is_new && ++pairs_ > 2 * kMaxPairs) PrunePairs();
}

uint64_t OperatorTable::HashOf(const Key& key, uint32_t kernel) const {
  const uint64_t of_operator = MixBits(NameTable::HashOf(names_[key.name]) + static_cast<uint64_t>(key.kind));
  return MixBits(of_operator ^ NameTable::HashOf(names_[kernel]));
}

size_t OperatorTable::CountPairs() const {
  size_t count = 0;
  for (const auto& [key, row] : rows_) count += row.kernels.size();
  return count;
}

void OperatorTable::PrunePairs() {
  const uint32_t other = names_.Add(NameTable::kOther);
  std::vector<uint64_t> hashes;
  for (const auto& [key, row] : rows_)
    for (const auto& [kernel, sums] : row.kernels)
      if (kernel != other) hashes.push_back(HashOf(key, kernel));
  if (hashes.size() > kMaxPairs) {
    const auto last = hashes.begin() + (kMaxPairs - 1);
    std::ranges::nth_element(hashes, last);
    limit_ = std::min(limit_, *last);
    for (auto& [key, row] : rows_) {
      OperatorKernel dropped;
      std::erase_if(row.kernels, [&](const auto& one) {
        if (one.first == other || HashOf(key, one.first) <= limit_) return false;
        dropped.Merge(one.second);
        return true;
      });
      if (dropped.count > 0) row.kernels[other].Merge(dropped);
    }
  }
  pairs_ = CountPairs();
}

void OperatorTable::AddRows(const std::map<Key, Sums>& rows,
                            const std::function<uint32_t(uint32_t)>& number_of) {
  for (const auto& [key, theirs] : rows) {
    Sums& row = rows_[{key.kind, number_of(key.name)}];
    row.calls += theirs.calls;
    row.host_ns = AddSaturated(row.host_ns, theirs.host_ns);
    row.launches += theirs.launches;
    row.self_ns = AddSaturated(row.self_ns, theirs.self_ns);
    row.total_ns = AddSaturated(row.total_ns, theirs.total_ns);
    for (const auto& [kernel, sums] : theirs.kernels) row.kernels[number_of(kernel)].Merge(sums);
  }
}

void OperatorTable::Merge(const OperatorTable& other) {
  const std::vector<uint32_t> ids = names_.AddAll(other.names_);
  AddRows(other.rows_, [&ids](uint32_t name) { return ids[name]; });
  limit_ = std::min(limit_, other.limit_);
  pairs_ = CountPairs();
  if (pairs_ > 2 * kMaxPairs) PrunePairs();
}

void OperatorTable::Finish() {
  names_.Finish();
  if (names_.has_dropped())
    AddRows(std::exchange(rows_, {}), [this](uint32_t name) { return names_.Canonical(name); });
  PrunePairs();
}

namespace {

// Work on a GPU with the thread that launched it.
struct ThreadLaunch {
  int64_t call_start_ns = 0;
  int64_t duration_ns = 0;
  uint32_t thread = 0;
  uint32_t kernel = 0;  // in the table
};
static_assert(sizeof(ThreadLaunch) == 24);

struct ByCallStart {
  static auto Key(const ThreadLaunch& l) {
    return std::tuple(l.call_start_ns, l.thread, l.kernel, l.duration_ns);
  }
  static uint64_t Radix(const ThreadLaunch& l) { return RadixOf(l.call_start_ns); }
  bool operator()(const ThreadLaunch& a, const ThreadLaunch& b) const { return Key(a) < Key(b); }
};
using LaunchRuns = SortedRuns<ThreadLaunch, ByCallStart>;

OperatorKind KindOf(SpanKind kind) {
  if (kind == SpanKind::kOperator) return OperatorKind::kOperator;
  return kind == SpanKind::kPython ? OperatorKind::kModule : OperatorKind::kRange;
}

// Sums the work of one trace.
class Attribution {
 public:
  explicit Attribution(const NameTable& names) : names_(names) {}

  // Collects the launches of a process.
  Status AddLaunches(const ProcessRecords& process, LaunchRuns& launches) {
    LaunchJoin joined(process, /*gpu_ahead_ns=*/0);
    LaunchedRecord record;
    while (joined.Next(record))
      if (record.has_call != 0)
        launches.Add({.call_start_ns = record.call_start_ns,
                      .duration_ns = record.gpu.end_ns - record.gpu.start_ns,
                      .thread = record.thread,
                      .kernel = KernelOf(record.gpu)});
    return joined.status();
  }

  // Spans and launches come by time; a span before launches of the same time.
  void Open(const Span& span) {
    if (span.kind == SpanKind::kCall) return;
    const Key key{KindOf(span.kind), NameOf(span.kind, span.name)};
    Row& row = rows_[key];
    if (row.sums == nullptr) row.sums = &table_.At(key);
    ++row.sums->calls;
    row.sums->host_ns = AddSaturated(row.sums->host_ns, span.end_ns - span.start_ns);
    Thread& thread = ThreadOf(static_cast<uint32_t>(span.tid));
    Close(thread, span.start_ns);
    if (thread.open.size() == kMaxOpen) return;
    thread.open.push_back({.end_ns = span.end_ns, .key = key, .row = &row});
    thread.next_end_ns = std::min(thread.next_end_ns, span.end_ns);
  }
  void Launch(const ThreadLaunch& launch) {
    Thread& thread = ThreadOf(launch.thread);
    Close(thread, launch.call_start_ns);
    std::array<bool, 3> innermost{true, true, true};
    ++launches_;
    for (size_t i = thread.open.size(); i-- > 0;) {
      const OpenSpan& span = thread.open[i];
      Sums& sums = *span.row->sums;
      if (std::exchange(innermost[static_cast<size_t>(span.key.kind)], false))
        sums.self_ns = AddSaturated(sums.self_ns, launch.duration_ns);
      if (std::exchange(span.row->last_launch, launches_) == launches_) continue;  // a recursion
      ++sums.launches;
      sums.total_ns = AddSaturated(sums.total_ns, launch.duration_ns);
      table_.AddKernel(span.key, sums, launch.kernel, launch.duration_ns);
    }
  }
  OperatorTable Finish() && {
    table_.Finish();
    return std::move(table_);
  }

 private:
  using Key = OperatorTable::Key;
  using Sums = OperatorTable::Sums;
  // Deeper spans are only counted: a trace may nest without end.
  static constexpr size_t kMaxOpen = 1'024;

  // A row of the table.
  struct Row {
    Sums* sums = nullptr;
    int64_t last_launch = 0;  // that was added to it
  };
  struct OpenSpan {
    int64_t end_ns = 0;
    Key key;
    Row* row = nullptr;
  };
  struct Thread {
    std::vector<OpenSpan> open;  // outermost first
    int64_t next_end_ns = std::numeric_limits<int64_t>::max();
  };

  Thread& ThreadOf(uint32_t number) {
    if (number >= threads_.size()) threads_.resize(size_t{number} + 1);
    return threads_[number];
  }
  // Ranges that were started and ended by hand may end before those that they surround.
  static void Close(Thread& thread, int64_t time_ns) {
    if (thread.next_end_ns > time_ns) return;
    thread.next_end_ns = std::numeric_limits<int64_t>::max();
    std::erase_if(thread.open, [&](const OpenSpan& span) {
      if (span.end_ns <= time_ns) return true;
      thread.next_end_ns = std::min(thread.next_end_ns, span.end_ns);
      return false;
    });
  }
  // The number of a name in the table.
  uint32_t NameOf(SpanKind kind, uint32_t name) {
    name = names_.Canonical(name);
    const auto [known, is_new] = numbers_.try_emplace(name);
    if (is_new) {
      std::string_view text = names_[name];
      if (kind == SpanKind::kPython && text.starts_with(DetailState::kModule))
        text.remove_prefix(DetailState::kModule.size());
      known->second = table_.Name(model::RepeatedName(text));
    }
    return known->second;
  }
  uint32_t KernelOf(const GpuRecord& record) {
    if (!importers::IsNamed(record.work)) return table_.Name(NameOfTransfer(record));
    const auto [known, is_new] = kernel_numbers_.try_emplace(names_.Canonical(record.name));
    if (is_new) known->second = table_.Name(names_[known->first]);
    return known->second;
  }

  const NameTable& names_;
  OperatorTable table_;
  std::unordered_map<uint32_t, uint32_t> numbers_;         // of names of spans
  std::unordered_map<uint32_t, uint32_t> kernel_numbers_;  // of names of kernels
  std::vector<Thread> threads_;
  std::map<Key, Row> rows_;
  int64_t launches_ = 0;  // so far
};

}  // namespace

Result<OperatorTable> SumOperators(const DetailState& trace) {
  Attribution attribution(trace.state().names());
  LaunchRuns launches(std::make_shared<TemporaryFile>());
  for (const ProcessRecords& process : trace.state().processes())
    TRY(attribution.AddLaunches(process, launches));
  TRY(launches.Finish());
  Merged<Span, ByNesting> spans(trace.spans().runs());
  Merged<ThreadLaunch, ByCallStart> launched(launches.runs());
  const Span* span = spans.Next();
  while (const ThreadLaunch* launch = launched.Next()) {
    for (; span != nullptr && span->start_ns <= launch->call_start_ns; span = spans.Next())
      attribution.Open(*span);
    attribution.Launch(*launch);
  }
  for (; span != nullptr; span = spans.Next()) attribution.Open(*span);
  TRY(spans.status());
  TRY(launched.status());
  return std::move(attribution).Finish();
}

}  // namespace gpusonde::analyze
