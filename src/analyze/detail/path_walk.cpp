// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/path_walk.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "analyze/detail/spans.h"
#include "model/span_name.h"

namespace gpusonde::analyze {
namespace {

using importers::GpuWork;
using importers::Span;
using importers::SpanKind;

// A shorter gap between work that was launched in time is the device's own (docs/analyze.md, "back to back").
constexpr int64_t kBackToBackNs = 30'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

// What a thread did: disjoint, in order of time; between them nothing is known.
struct Slice {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  const Span* span = nullptr;
};

// The innermost span at each time. `spans` in the order of ByNesting.
std::vector<Slice> SlicesOf(const std::vector<const Span*>& spans) {
  std::vector<Slice> slices;
  std::vector<const Span*> open;
  int64_t time_ns = kNever;
  const auto advance = [&](int64_t until_ns) {
    while (!open.empty() && time_ns < until_ns) {
      const int64_t end_ns = std::min(open.back()->end_ns, until_ns);
      if (end_ns > time_ns) {
        const bool goes_on =
            !slices.empty() && slices.back().span == open.back() && slices.back().end_ns == time_ns;
        if (goes_on)
          slices.back().end_ns = end_ns;
        else
          slices.push_back({time_ns, end_ns, open.back()});
      }
      time_ns = std::max(time_ns, end_ns);
      while (!open.empty() && open.back()->end_ns <= time_ns) open.pop_back();
    }
    time_ns = std::max(time_ns, until_ns);
  };
  for (const Span* const span : spans) {
    advance(span->start_ns);
    while (!open.empty() && open.back()->end_ns <= time_ns) open.pop_back();
    if (span->end_ns > span->start_ns) open.push_back(span);
  }
  advance(std::numeric_limits<int64_t>::max());
  return slices;
}

class Walk {
 public:
  Walk(PathEvents events, const PathNames& names, CriticalPath& path)
      : events_(std::move(events)), names_(names), path_(path) {
    std::vector<LaunchedRecord>& gpu = events_.gpu;
    // By stream, then in its order.
    std::ranges::sort(gpu, [](const LaunchedRecord& a, const LaunchedRecord& b) {
      return a.gpu.stream != b.gpu.stream ? a.gpu.stream < b.gpu.stream : ByStart()(a, b);
    });
    for (const LaunchedRecord& event : gpu) by_end_.push_back(&event);
    std::ranges::stable_sort(by_end_, {}, [](const LaunchedRecord* event) { return event->gpu.end_ns; });
    std::ranges::sort(events_.spans, ByNesting());
    // Asynchronous copies of pageable memory, too, return once they have ended.
    std::set<std::tuple<int32_t, int64_t, int64_t>> blocking;
    for (const LaunchedRecord& event : gpu)
      if (event.has_call != 0 && event.gpu.work == GpuWork::kMemcpy && event.gpu.end_ns <= event.call_end_ns)
        blocking.insert({static_cast<int32_t>(event.thread), event.call_start_ns, event.call_end_ns});
    std::map<int32_t, std::vector<const Span*>> threads;
    for (const Span& span : events_.spans) threads[span.tid].push_back(&span);
    for (const auto& [number, spans] : threads) {
      Thread& thread = threads_[static_cast<uint32_t>(number)];
      thread.slices = SlicesOf(spans);
      std::ranges::copy_if(thread.slices, std::back_inserter(thread.active), [](const Slice& slice) {
        return slice.span->kind == SpanKind::kCall || slice.span->kind == SpanKind::kOperator;
      });
      for (const Span* const span : spans)
        if (span->kind == SpanKind::kCall && (WaitsForDevice(names.of_span(span->name)) ||
                                              blocking.contains({number, span->start_ns, span->end_ns})))
          thread.waits.push_back(span);
      std::ranges::stable_sort(thread.waits, {}, &Span::end_ns);
    }
    for (const LaunchedRecord& event : gpu)
      if (event.has_call != 0) threads_[event.thread].launches = true;
    most_steps_ = 4 * (gpu.size() + events_.spans.size()) + 16;
    looks_left_ = 16 * most_steps_;
  }

  void Run(const LaunchedRecord& from, bool ends) {
    const auto found = std::ranges::find_if(
        events_.gpu, [&](const LaunchedRecord& one) { return ByStart::Key(one) == ByStart::Key(from); });
    const LaunchedRecord* event = found != events_.gpu.end() ? &*found : nullptr;
    time_ns_ = path_.end_ns;
    if (event != nullptr && ends) Through(*event);
    // Events and spans of no duration could send the walk in circles.
    for (size_t steps = 0; event != nullptr && time_ns_ > path_.begin_ns && steps < most_steps_; ++steps)
      event = Before(*event);
    if (time_ns_ > path_.begin_ns) Back(path_.begin_ns, PathKind::kUnknown, {});
    Summarize();
  }

 private:
  struct Thread {
    std::vector<Slice> slices;
    std::vector<Slice> active;       // those in operators and calls
    std::vector<const Span*> waits;  // by their ends
    bool launches = false;
  };

  // Searches that find nothing must not make a walk through a hostile trace quadratic.
  bool MayLook() {
    if (looks_left_ > 0) --looks_left_;
    return looks_left_ > 0;
  }

  // Attributes the time back to `to_ns`.
  void Back(int64_t to_ns, PathKind kind, std::string_view name) {
    to_ns = std::max(to_ns, path_.begin_ns);
    if (to_ns >= time_ns_) return;
    CriticalPath::Part& part = parts_[{kind, std::string(name)}];
    ++part.count;
    part.total_ns += time_ns_ - to_ns;
    time_ns_ = to_ns;
  }

  // Back to the event's start.
  void Through(const LaunchedRecord& event) {
    PathKind kind = PathKind::kCompute;
    if (event.gpu.work == GpuWork::kGraph) kind = PathKind::kGraph;
    if (event.gpu.work == GpuWork::kMemcpy || event.gpu.work == GpuWork::kMemset) kind = PathKind::kTransfer;
    if (event.gpu.work == GpuWork::kKernel && names_.is_communication(event.gpu.name))
      kind = PathKind::kCommunication;
    const int64_t before_ns = time_ns_;
    Back(event.gpu.start_ns, kind, names_.of_work(event.gpu));
    if (kind == PathKind::kCommunication && path_.communication.size() < CriticalPath::kMaxCommunication)
      path_.communication.push_back({event.gpu.start_ns, before_ns - time_ns_});
  }

  // What the event's start waited for last, after attributing the time to it; null if unknown or before the
  // path's begin.
  const LaunchedRecord* Before(const LaunchedRecord& event) {
    const LaunchedRecord* previous = &event == events_.gpu.data() ? nullptr : &event - 1;
    if (previous != nullptr && previous->gpu.stream != event.gpu.stream) previous = nullptr;
    const int64_t previous_ns = previous == nullptr ? kNever : std::min(previous->gpu.end_ns, time_ns_);
    int64_t launched_ns = kNever;
    if (event.has_call != 0)
      launched_ns =
          event.call_end_ns <= time_ns_ ? event.call_end_ns : std::min(event.call_start_ns, time_ns_);
    const int64_t ready_ns = std::max(previous_ns, launched_ns);
    if (ready_ns == kNever || time_ns_ - ready_ns > kBackToBackNs)
      if (const LaunchedRecord* const other = LastOfOtherStream(event.gpu.stream, ready_ns)) {
        Back(other->gpu.end_ns, PathKind::kStreamWait, {});
        Through(*other);
        return other;
      }
    if (event.has_call != 0 && launched_ns > previous_ns) {
      Back(launched_ns, PathKind::kLaunch, {});
      return OnHost(event.thread);
    }
    if (previous == nullptr) return nullptr;
    Back(previous_ns, PathKind::kGap, {});
    Through(*previous);
    return previous;
  }

  // The work of another stream that ended last until now, after `after_ns`.
  const LaunchedRecord* LastOfOtherStream(uint32_t stream, int64_t after_ns) {
    auto at = std::ranges::upper_bound(by_end_, time_ns_, {},
                                       [](const LaunchedRecord* event) { return event->gpu.end_ns; });
    while (at != by_end_.begin() && MayLook()) {
      const LaunchedRecord* const event = *--at;
      if (event->gpu.end_ns <= after_ns) return nullptr;
      if (event->gpu.stream != stream && event->gpu.start_ns < time_ns_) return event;
    }
    return nullptr;
  }

  // A call of a thread that waited for work until now or before, and that work.
  struct Wait {
    const Span* call = nullptr;
    const LaunchedRecord* work = nullptr;
  };

  Wait LastWait(const Thread& thread) {
    auto at = std::ranges::upper_bound(thread.waits, time_ns_, {}, &Span::end_ns);
    while (at != thread.waits.begin() && (*(at - 1))->end_ns > path_.begin_ns && MayLook()) {
      const Span* const call = *--at;
      if (const LaunchedRecord* const work = LastWithin(*call)) return {call, work};
    }
    return {};
  }

  // Back on a thread, and on those that it waited for, to the last call that waited for work; that work, or
  // null.
  const LaunchedRecord* OnHost(uint32_t number) {
    // Each round but the last goes to another thread, where there is an active slice before.
    for (size_t rounds = 0; rounds < most_steps_; ++rounds) {
      const auto found = threads_.find(number);
      if (found == threads_.end()) return nullptr;
      const Thread& thread = found->second;
      const Wait wait = LastWait(thread);
      const int64_t until_ns = wait.call != nullptr ? wait.call->end_ns : path_.begin_ns;
      const std::optional<uint32_t> next = BackOnThread(number, thread, until_ns);
      if (next.has_value()) {
        number = *next;
        continue;
      }
      if (wait.call == nullptr) return nullptr;
      Back(wait.work->gpu.end_ns, PathKind::kSync, names_.of_span(wait.call->name));
      Through(*wait.work);
      return wait.work;
    }
    return nullptr;
  }

  // Back to `until_ns`, or to where another thread was active before this one; that thread.
  std::optional<uint32_t> BackOnThread(uint32_t number, const Thread& thread, int64_t until_ns) {
    while (time_ns_ > until_ns) {
      const auto after = std::ranges::lower_bound(thread.active, time_ns_, {}, &Slice::begin_ns);
      const Slice* const last = after == thread.active.begin() ? nullptr : &*(after - 1);
      if (last != nullptr && last->end_ns >= time_ns_) {
        Host(thread, std::max(last->begin_ns, until_ns));
        continue;
      }
      const int64_t idle_ns = std::max(last == nullptr ? until_ns : last->end_ns, until_ns);
      if (time_ns_ - idle_ns > kBackToBackNs)
        if (const auto other = LastActive(number, idle_ns)) {
          Host(thread, other->second);
          return other->first;
        }
      Host(thread, idle_ns);
    }
    return std::nullopt;
  }

  // Of the other threads that launch work and do nothing now, the one that was active last after a time, and
  // until when.
  std::optional<std::pair<uint32_t, int64_t>> LastActive(uint32_t number, int64_t after_ns) {
    std::optional<std::pair<uint32_t, int64_t>> last;
    for (const auto& [other, thread] : threads_) {
      if (other == number || !thread.launches || !MayLook()) continue;
      const auto after = std::ranges::lower_bound(thread.active, time_ns_, {}, &Slice::begin_ns);
      if (after == thread.active.begin()) continue;
      const int64_t end_ns = (after - 1)->end_ns;
      if (end_ns > time_ns_ || end_ns <= after_ns) continue;
      if (!last.has_value() || end_ns > last->second) last = {other, end_ns};
    }
    return last;
  }

  // The work that ended last within a call and was launched before it.
  const LaunchedRecord* LastWithin(const Span& wait) {
    auto at = std::ranges::upper_bound(by_end_, wait.end_ns, {},
                                       [](const LaunchedRecord* event) { return event->gpu.end_ns; });
    while (at != by_end_.begin() && (*(at - 1))->gpu.end_ns >= wait.start_ns && MayLook()) {
      const LaunchedRecord* const event = *--at;
      if (event->has_call == 0 || event->call_start_ns <= wait.start_ns) return event;
    }
    return nullptr;
  }

  // Attributes the time back to `to_ns` to what a thread did.
  void Host(const Thread& thread, int64_t to_ns) {
    to_ns = std::max(to_ns, path_.begin_ns);
    auto at = std::ranges::lower_bound(thread.slices, time_ns_, {}, &Slice::begin_ns);
    while (time_ns_ > to_ns && at != thread.slices.begin()) {
      const Slice& slice = *--at;
      Back(std::max(slice.end_ns, to_ns), PathKind::kHost, {});
      if (slice.end_ns <= to_ns) return;
      const bool is_call = slice.span->kind == SpanKind::kCall;
      const std::string_view name = names_.of_span(slice.span->name);
      Back(std::max(slice.begin_ns, to_ns), is_call ? PathKind::kCall : PathKind::kOperator,
           is_call ? name : model::RepeatedName(name));
    }
    Back(to_ns, PathKind::kHost, {});
  }

  void Summarize() {
    for (auto& [key, part] : parts_)
      path_.parts.push_back({key.first, key.second, part.count, part.total_ns});
    std::ranges::stable_sort(path_.parts, std::greater(), &CriticalPath::Part::total_ns);
    // Of parts beyond the bound only the kind is kept.
    std::map<PathKind, CriticalPath::Part> others;
    for (size_t i = CriticalPath::kMaxParts; i < path_.parts.size(); ++i) {
      CriticalPath::Part& other = others[path_.parts[i].kind];
      other.kind = path_.parts[i].kind;
      other.count += path_.parts[i].count;
      other.total_ns += path_.parts[i].total_ns;
    }
    path_.parts.resize(std::min(path_.parts.size(), CriticalPath::kMaxParts));
    for (auto& [kind, other] : others) {
      other.name = NameTable::kOther;
      path_.parts.push_back(std::move(other));
    }
  }

  PathEvents events_;
  const PathNames& names_;
  CriticalPath& path_;
  std::vector<const LaunchedRecord*> by_end_;
  std::map<uint32_t, Thread> threads_;
  std::map<std::pair<PathKind, std::string>, CriticalPath::Part> parts_;
  int64_t time_ns_ = 0;  // what comes later is attributed
  size_t most_steps_ = 0;
  size_t looks_left_ = 0;
};

}  // namespace

bool WaitsForDevice(std::string_view call) {
  return call.contains("Synchronize") || (call.contains("Memcpy") && !call.contains("Async"));
}

void WalkPath(PathEvents events, const LaunchedRecord& from, bool ends, const PathNames& names,
              CriticalPath& path) {
  Walk(std::move(events), names, path).Run(from, ends);
}

}  // namespace gpusonde::analyze
