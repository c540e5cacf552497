// SPDX-License-Identifier: Apache-2.0
#include "model/device_account.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/student_t.h"
#include "base/time.h"

namespace gpusonde::model {
namespace {

constexpr int64_t kMinuteNs = 60 * kNanosPerSecond;
constexpr double kTail95 = 0.025;  // of each side of an interval

// How a count of holders changes at a time.
struct Change {
  int64_t time_ns = 0;
  int holders = 0;
  int unobserved = 0;
};

void AddChanges(std::span<const TimeRange> times, int holders, int unobserved, std::vector<Change>& changes) {
  for (const TimeRange& time : times) {
    changes.push_back({time.from_ns, holders, unobserved});
    changes.push_back({time.to_ns, -holders, -unobserved});
  }
}

// The sorted disjoint ranges within a range.
std::vector<TimeRange> Within(std::span<const TimeRange> times, const TimeRange& range) {
  const auto first =
      std::ranges::partition_point(times, [&](const TimeRange& time) { return time.to_ns <= range.from_ns; });
  return UnionOf(std::span(first, times.end()), range);
}

}  // namespace

HolderUse& HolderUse::operator+=(const HolderUse& more) {
  busy_ns += more.busy_ns;
  idle_ns += more.idle_ns;
  unobserved_ns += more.unobserved_ns;
  held_ns += more.held_ns;
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].observed_ns += more.blocks[i].observed_ns;
    blocks[i].busy_ns += more.blocks[i].busy_ns;
  }
  return *this;
}

DeviceAccount::Blocks DeviceAccount::EqualBlocks(const TimeRange& range) {
  const auto count = static_cast<int64_t>(kAccountBlocks);
  Blocks blocks{range.from_ns, (range.to_ns - range.from_ns) / count + 1, kAccountBlocks};
  // Roll-ups are by the minute: a block that ends within one would have to read it in rows.
  if (blocks.length_ns >= kMinuteNs) {
    blocks.from_ns -= range.from_ns % kMinuteNs;
    blocks.length_ns = ((range.to_ns - blocks.from_ns) / count / kMinuteNs + 1) * kMinuteNs;
  }
  return blocks;
}

DeviceAccount::DeviceAccount(std::span<const Holder> holders, const TimeRange& range)
    : DeviceAccount(holders, range, EqualBlocks(range)) {}

DeviceAccount::DeviceAccount(std::span<const Holder> holders, const TimeRange& range, int64_t block_ns)
    : DeviceAccount(holders, range,
                    Blocks{range.from_ns, block_ns,
                           static_cast<size_t>((range.to_ns - range.from_ns - 1) / block_ns + 1)}) {}

DeviceAccount::DeviceAccount(std::span<const Holder> holders, const TimeRange& range, const Blocks& blocks)
    : blocks_(blocks), busy_ns_(holders.size(), std::vector<double>(blocks.count)) {
  std::vector<Change> changes;
  for (const Holder& holder : holders) {
    held_.push_back(Within(holder.held, range));
    AddChanges(held_.back(), 1, 0, changes);
    AddChanges(Subtract(held_.back(), holder.observed), 0, 1, changes);
  }
  for (size_t i = 0; i < blocks_.count; ++i) changes.push_back({Block(i).from_ns});
  std::ranges::sort(changes, {}, &Change::time_ns);
  int held = 0, unobserved = 0;
  for (size_t i = 0; i + 1 < changes.size(); ++i) {
    held += changes[i].holders;
    unobserved += changes[i].unobserved;
    const TimeRange until_next{changes[i].time_ns, changes[i + 1].time_ns};
    if (held > 0 && until_next.from_ns < until_next.to_ns)
      segments_.push_back({until_next, static_cast<double>(held), unobserved == 0});
  }
}

TimeRange DeviceAccount::Block(size_t number) const {
  const int64_t from_ns = blocks_.from_ns + static_cast<int64_t>(number) * blocks_.length_ns;
  return {from_ns, from_ns + blocks_.length_ns};
}

size_t DeviceAccount::BlockOf(int64_t time_ns) const {
  const int64_t number = (time_ns - blocks_.from_ns) / blocks_.length_ns;
  return static_cast<size_t>(std::clamp<int64_t>(number, 0, static_cast<int64_t>(blocks_.count) - 1));
}

// The first segment that ends after this time.
size_t DeviceAccount::SegmentAt(int64_t time_ns) const {
  const auto found = std::ranges::partition_point(
      segments_, [&](const Segment& segment) { return segment.range.to_ns <= time_ns; });
  return static_cast<size_t>(found - segments_.begin());
}

void DeviceAccount::AddBusy(std::span<const std::vector<TimeRange>> by_holder) {
  TimeRange covered{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (const auto& times : by_holder)
    if (!times.empty())
      covered = {std::min(covered.from_ns, times.front().from_ns),
                 std::max(covered.to_ns, times.back().to_ns)};
  if (covered.from_ns >= covered.to_ns) return;
  std::vector<std::vector<TimeRange>> of_block(by_holder.size());
  for (size_t block = BlockOf(covered.from_ns); block <= BlockOf(covered.to_ns - 1); ++block) {
    for (size_t i = 0; i < by_holder.size(); ++i) of_block[i] = Within(by_holder[i], Block(block));
    AddBusyOfBlock(of_block, block);
  }
}

void DeviceAccount::AddBusyOfBlock(std::span<const std::vector<TimeRange>> by_holder, size_t block) {
  struct Edge {
    int64_t time_ns = 0;
    size_t holder = 0;
    bool starts = false;
  };
  std::vector<Edge> edges;
  for (size_t i = 0; i < by_holder.size(); ++i)
    for (const TimeRange& time : by_holder[i]) {
      edges.push_back({time.from_ns, i, true});
      edges.push_back({time.to_ns, i, false});
    }
  std::ranges::sort(edges, {}, &Edge::time_ns);
  if (edges.empty()) return;

  double share_ns = 0;  // of each process whose work ran all the time so far
  std::vector<double> share_at_start(by_holder.size());
  double running = 0;
  int64_t since_ns = edges.front().time_ns;
  size_t segment = SegmentAt(since_ns);
  for (const Edge& edge : edges) {
    while (running > 0 && since_ns < edge.time_ns && segment < segments_.size()) {
      Segment& now = segments_[segment];
      const TimeRange common{std::max(since_ns, now.range.from_ns), std::min(edge.time_ns, now.range.to_ns)};
      if (now.observed && common.from_ns < common.to_ns) {
        share_ns += LengthNs(common) / running;
        now.busy_ns += LengthNs(common);
      }
      if (now.range.to_ns > edge.time_ns) break;
      ++segment;
    }
    since_ns = edge.time_ns;
    if (running == 0) segment = std::max(segment, SegmentAt(since_ns));
    running += edge.starts ? 1 : -1;
    if (edge.starts)
      share_at_start[edge.holder] = share_ns;
    else
      busy_ns_[edge.holder][block] += share_ns - share_at_start[edge.holder];
  }
}

bool DeviceAccount::IsEven(const TimeRange& window) const {
  const size_t at = SegmentAt(window.from_ns);
  return at < segments_.size() && segments_[at].observed && segments_[at].range.from_ns <= window.from_ns &&
         segments_[at].range.to_ns >= window.to_ns;
}

void DeviceAccount::AddBusySum(size_t holder, const TimeRange& window, int64_t busy_ns) {
  const double busy = std::clamp(static_cast<double>(busy_ns), 0.0, LengthNs(window));
  segments_[SegmentAt(window.from_ns)].busy_ns += busy;
  busy_ns_[holder][BlockOf(window.from_ns)] += busy;
}

std::vector<TimeRange> DeviceAccount::Observed() const {
  std::vector<TimeRange> observed;
  for (const Segment& segment : segments_)
    if (segment.observed) AppendToUnion(segment.range, observed);
  return observed;
}

std::vector<std::vector<DeviceAccount::BlockUse>> DeviceAccount::UsesByBlock() const {
  // What a process that held the device all the time until each segment would have.
  std::vector<double> idle_until{0}, unobserved_until{0};
  for (const Segment& segment : segments_) {
    const double each = LengthNs(segment.range) / segment.holders;
    const double idle = std::max(LengthNs(segment.range) - segment.busy_ns, 0.0) / segment.holders;
    idle_until.push_back(idle_until.back() + (segment.observed ? idle : 0));
    unobserved_until.push_back(unobserved_until.back() + (segment.observed ? 0 : each));
  }
  std::vector<std::vector<BlockUse>> uses(held_.size());
  std::vector<BlockUse> of_holder;
  for (size_t i = 0; i < held_.size(); ++i) {
    of_holder.assign(blocks_.count, {});
    for (const TimeRange& held : held_[i]) {
      for (size_t block = BlockOf(held.from_ns); block <= BlockOf(held.to_ns - 1); ++block) {
        const TimeRange within{std::max(held.from_ns, Block(block).from_ns),
                               std::min(held.to_ns, Block(block).to_ns)};
        const size_t from = SegmentAt(within.from_ns);
        const size_t to = SegmentAt(within.to_ns);
        of_holder[block].held_ns += within.to_ns - within.from_ns;
        of_holder[block].idle_ns += idle_until[to] - idle_until[from];
        of_holder[block].unobserved_ns += unobserved_until[to] - unobserved_until[from];
      }
    }
    for (size_t block = 0; block < blocks_.count; ++block) {
      BlockUse& use = of_holder[block];
      use.block = block;
      use.busy_ns = busy_ns_[i][block];
      if (use.held_ns > 0 || use.busy_ns > 0) uses[i].push_back(use);
    }
  }
  return uses;
}

std::vector<HolderUse> DeviceAccount::Uses() const {
  std::vector<HolderUse> uses;
  for (const std::vector<BlockUse>& of_holder : UsesByBlock()) {
    HolderUse& use = uses.emplace_back();
    for (const BlockUse& part : of_holder) {
      use.busy_ns += part.busy_ns;
      use.idle_ns += part.idle_ns;
      use.unobserved_ns += part.unobserved_ns;
      use.held_ns += part.held_ns;
      use.blocks[part.block] = {.observed_ns = part.idle_ns + part.busy_ns, .busy_ns = part.busy_ns};
    }
  }
  return uses;
}

std::optional<BusyShare> EstimateBusyShare(const HolderUse& use) {
  const double observed_ns = use.busy_ns + use.idle_ns;
  if (!(observed_ns > 0)) return std::nullopt;
  const double share = std::clamp(use.busy_ns / observed_ns, 0.0, 1.0);
  const double all_ns = observed_ns + use.unobserved_ns;
  // The bounds: no work ran, or work always ran, while some holder was not observed.
  BusyShare estimate{share, use.busy_ns / all_ns, (use.busy_ns + use.unobserved_ns) / all_ns};
  double blocks = 0, squares = 0;
  for (const AccountBlock& block : use.blocks) {
    if (!(block.observed_ns > 0)) continue;
    const double residual = block.busy_ns - share * block.observed_ns;
    blocks += 1;
    squares += residual * residual;
  }
  constexpr double kMinBlocks = 10;
  if (blocks < kMinBlocks) return estimate;
  const double half = StudentQuantile(kTail95, blocks - 1) *
                      std::sqrt(use.unobserved_ns / all_ns * blocks / (blocks - 1) * squares) / observed_ns;
  estimate.low = std::max(estimate.low, share - half);
  estimate.high = std::min(estimate.high, share + half);
  return estimate;
}

}  // namespace gpusonde::model
