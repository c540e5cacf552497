// SPDX-License-Identifier: Apache-2.0
#include "agent/merger.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <variant>

namespace gpusonde::agent {
namespace {

constexpr int kFirst = 0, kBetween = 1, kLast = 2;  // among events of the same time

struct Key {
  int64_t time_ns = 0;
  int rank = kBetween;
};

// Events that need no merging have no time here.
struct KeyOf {
  Key operator()(const ebpf::RawSample& sample) const { return {sample.time_ns}; }
  Key operator()(const ebpf::OffCpuBegin& begin) const { return {static_cast<int64_t>(begin.taken_ns)}; }
  Key operator()(const ebpf::OffCpuEnd& end) const { return {static_cast<int64_t>(end.end_ns), kLast}; }
  Key operator()(const perf::SidebandEvent& event) const { return {event.time_ns, kFirst}; }
  Key operator()(const cupti::Event& event) const { return {event.stack_ns().value_or(0)}; }
  template <class Other>
  Key operator()(const Other&) const {
    return {};
  }
};

ebpf::RawStack* StackOf(sources::Event& event) {
  if (auto* sample = std::get_if<ebpf::RawSample>(&event); sample != nullptr) return &sample->stack;
  if (auto* begin = std::get_if<ebpf::OffCpuBegin>(&event); begin != nullptr) return &begin->stack;
  if (auto* gpu = std::get_if<cupti::Event>(&event); gpu != nullptr) return &gpu->stack;
  return nullptr;
}

cupti::Call* CallOf(sources::Event& event) {
  auto* gpu = std::get_if<cupti::Event>(&event);
  return gpu == nullptr ? nullptr : std::get_if<cupti::Call>(&gpu->what);
}

}  // namespace

void Merger::Ingest(sources::Event&& event) {
  const Key key = std::visit(KeyOf{}, event);
  Waiting& waiting = waiting_.emplace_back(Waiting{
      .time_ns = key.time_ns, .rank = key.rank, .first_word = words_.size(), .event = std::move(event)});
  if (const ebpf::RawStack* stack = StackOf(waiting.event); stack != nullptr)
    words_.insert(words_.end(), stack->words().begin(), stack->words().end());
  if (const cupti::Call* call = CallOf(waiting.event); call != nullptr) {
    waiting.domain = call->domain;
    waiting.name = call->name;
  }
  const auto* sideband = std::get_if<perf::SidebandEvent>(&waiting.event);
  const auto* fork = sideband == nullptr ? nullptr : std::get_if<perf::ForkEvent>(&sideband->what);
  if (fork != nullptr && fork->pid != fork->parent_pid) forks_.insert_or_assign(fork->pid, *sideband);
  const auto* comm = sideband == nullptr ? nullptr : std::get_if<perf::CommEvent>(&sideband->what);
  if (comm == nullptr || !comm->exec) return;
  int64_t& exec_ns = execs_[comm->pid];
  exec_ns = std::max(exec_ns, sideband->time_ns);
}

void Merger::Drain(int64_t until_ns, const sources::Source::Visit& visit) {
  std::vector<size_t> order(waiting_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [this](size_t at) { return std::pair(waiting_[at].time_ns, waiting_[at].rank); });
  size_t visited = 0;
  for (; visited < order.size() && waiting_[order[visited]].time_ns <= until_ns; ++visited) {
    Waiting& next = waiting_[order[visited]];
    Restore(next);
    visit(std::move(next.event));
  }
  Keep(order, visited);
  std::erase_if(execs_, [until_ns](const auto& exec) { return exec.second <= until_ns; });
  std::erase_if(forks_, [until_ns](const auto& fork) { return fork.second.time_ns <= until_ns; });
}

bool Merger::IsReplacedAfter(int32_t pid, int64_t time_ns) const {
  const auto exec = execs_.find(pid);
  return exec != execs_.end() && exec->second > time_ns;
}

const perf::SidebandEvent* Merger::ForkOf(int32_t pid) const {
  const auto fork = forks_.find(pid);
  return fork == forks_.end() ? nullptr : &fork->second;
}

// The views in an event pointed into the source's buffer when it was ingested.
void Merger::Restore(Waiting& waiting) const {
  if (ebpf::RawStack* stack = StackOf(waiting.event); stack != nullptr)
    *stack =
        ebpf::RawStack(stack->counts(), std::span(words_).subspan(waiting.first_word, stack->words().size()));
  if (cupti::Call* call = CallOf(waiting.event); call != nullptr) {
    call->domain = waiting.domain;
    call->name = waiting.name;
  }
}

// Keeps order[first], order[first + 1], …
void Merger::Keep(const std::vector<size_t>& order, size_t first) {
  std::vector<Waiting> kept;
  std::vector<uint64_t> words;
  for (const size_t at : std::span(order).subspan(first)) {
    Waiting& waiting = kept.emplace_back(std::move(waiting_[at]));
    const ebpf::RawStack* stack = StackOf(waiting.event);
    if (stack == nullptr) continue;
    const auto begin =
        words_.begin() + static_cast<ptrdiff_t>(std::exchange(waiting.first_word, words.size()));
    words.insert(words.end(), begin, begin + static_cast<ptrdiff_t>(stack->words().size()));
  }
  waiting_ = std::move(kept);
  words_ = std::move(words);
}

}  // namespace gpusonde::agent
