// SPDX-License-Identifier: Apache-2.0
#include "diagnose/loop_finder.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <ranges>

#include "diagnose/step_table.h"

namespace gpusonde::diagnose {
namespace {

constexpr const auto& kTable = kStepTable.loops;

using Counts = std::unordered_map<uint64_t, int64_t>;

int64_t SumOf(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0},
                         [](int64_t sum, const auto& each) { return sum + each.second; });
}

// The part of what is counted that both have, in [0, 1].
double SameShare(const Counts& one, const Counts& other) {
  const auto of_one = static_cast<double>(SumOf(one)), of_other = static_cast<double>(SumOf(other));
  double same = 0;
  for (const auto& [what, count] : one)
    if (const auto found = other.find(what); found != other.end())
      same += std::min(static_cast<double>(count) / of_one, static_cast<double>(found->second) / of_other);
  return same;
}

bool AreWithin(double one, double other, double ratio) {
  return std::max(one, other) <= ratio * std::min(one, other);
}

}  // namespace

// Threads and streams that have to do with each other, and the rounds between their waits.
struct LoopFinder::Group {
  Loop loop;
  std::set<uint32_t> streams;
  Counts names;                  // pieces of GPU work
  Counts rounds;                 // by what they do
  std::vector<int64_t> lengths;  // pieces of GPU work in each round

  double median_length() const {
    std::vector<int64_t> sorted = lengths;
    const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    return static_cast<double>(*middle);
  }
  // What most rounds do; nullopt if they differ.
  std::optional<uint64_t> usual_round() const {
    const auto most = std::ranges::max_element(rounds, {}, [](const auto& each) { return each.second; });
    if (static_cast<double>(most->second) < kTable.min_usual * static_cast<double>(lengths.size()))
      return std::nullopt;
    return most->first;
  }

  bool IsAlike(const Group& other) const {
    if (AreWithin(static_cast<double>(lengths.size()), static_cast<double>(other.lengths.size()),
                  kTable.same_pace))
      return true;
    const std::optional<uint64_t> one = usual_round(), another = other.usual_round();
    if (one.has_value() && another.has_value()) return *one == *another;
    return SameShare(names, other.names) >= kTable.same_names &&
           AreWithin(median_length(), other.median_length(), kTable.same_length);
  }
};

void LoopFinder::IngestCall(int32_t session, int64_t correlation, int32_t tid) {
  if (threads_.size() < kTable.max_pieces) threads_.insert_or_assign({session, correlation}, tid);
}

uint32_t LoopFinder::IndexOf(const Stream& stream) {
  return streams_.try_emplace(stream, static_cast<uint32_t>(streams_.size())).first->second;
}

void LoopFinder::Ingest(const Stream& on, const Work& work, std::span<const WorkTime> times, int32_t session,
                        std::span<const int64_t> correlations) {
  if (on.stream < 0 || pieces_.size() + times.size() > kTable.max_pieces) return;
  const uint32_t stream = IndexOf(on);
  const uint64_t name = IdHasher("work").Add(work.name).Finish().low;
  for (size_t i = 0; i < times.size(); ++i)
    pieces_.push_back({.end_ns = times[i].end_ns,
                       .stream = stream,
                       .kind = work.kind,
                       .name = name,
                       .what = Mix(name + work.shape),
                       .session = session,
                       .correlation = i < correlations.size() ? correlations[i] : -1});
}

// The streams that something waited for, and on which kernels ran.
std::set<uint32_t> LoopFinder::AwaitedStreams() const {
  std::set<uint32_t> awaited, with_kernels;
  for (const Piece& piece : pieces_) {
    if (piece.kind == Work::Kind::kSync) awaited.insert(piece.stream);
    if (piece.kind == Work::Kind::kKernel) with_kernels.insert(piece.stream);
  }
  std::erase_if(awaited, [&](uint32_t stream) { return !with_kernels.contains(stream); });
  return awaited;
}

// Streams to which one thread launches are of one group, and so are the threads that launch to one stream: a
// union-find over threads, as a server may have a stream or a thread for each request.
std::vector<LoopFinder::Group> LoopFinder::GroupByThread() const {
  std::map<uint32_t, std::map<int32_t, int64_t>> calls;  // by stream and thread
  for (const Piece& piece : pieces_)
    if (const auto thread = threads_.find({piece.session, piece.correlation}); thread != threads_.end())
      ++calls[piece.stream][thread->second];
  std::map<int32_t, int32_t> joined_to;  // another thread of the group; itself: it stands for the group
  const auto group_of = [&](int32_t tid) {
    joined_to.try_emplace(tid, tid);
    while (joined_to[tid] != tid) tid = joined_to[tid] = joined_to[joined_to[tid]];
    return tid;
  };
  std::map<uint32_t, int32_t> launchers;  // of each stream, one of its threads
  for (const auto& [stream, by_thread] : calls) {
    const int64_t most = std::ranges::max(by_thread | std::views::values);
    for (const auto& [tid, count] : by_thread)
      if (static_cast<double>(count) >= kTable.min_share * static_cast<double>(most))
        joined_to[group_of(tid)] = group_of(launchers.try_emplace(stream, tid).first->second);
  }
  std::map<int32_t, Group> grouped;
  for (const int32_t tid : joined_to | std::views::keys) grouped[group_of(tid)].loop.threads.insert(tid);
  for (const auto& [stream, index] : streams_)
    if (const auto launcher = launchers.find(index); launcher != launchers.end()) {
      Group& group = grouped[group_of(launcher->second)];
      group.streams.insert(index);
      group.loop.streams.insert(stream);
    }
  std::vector<Group> groups;
  std::ranges::move(grouped | std::views::values, std::back_inserter(groups));
  return groups;
}

// A round lasts from one wait for a stream of the group to the next, if kernels ran in between. What lies
// before the first wait is no whole round.
void LoopFinder::DescribeRounds(std::vector<Group>& groups) const {
  struct Round {
    uint64_t what = 0;
    int64_t length = 0;
    bool is_whole = false, has_kernels = false;
  };
  std::vector<Round> open(groups.size());
  std::vector<size_t> group_of(streams_.size(), groups.size());
  for (size_t i = 0; i < groups.size(); ++i)
    for (const uint32_t stream : groups[i].streams) group_of[stream] = i;
  std::vector<Piece> sorted = pieces_;
  std::ranges::stable_sort(sorted, {}, &Piece::end_ns);
  for (const Piece& piece : sorted) {
    const size_t at = group_of[piece.stream];
    if (at == groups.size()) continue;
    Round& round = open[at];
    if (piece.kind == Work::Kind::kSync) {
      if (!round.has_kernels) continue;
      if (round.is_whole) {
        ++groups[at].rounds[round.what];
        groups[at].lengths.push_back(round.length);
      }
      round = {.is_whole = true};
      continue;
    }
    ++groups[at].names[piece.name];
    round.what += Mix(piece.what);
    ++round.length;
    round.has_kernels |= piece.kind == Work::Kind::kKernel;
  }
}

std::vector<Loop> LoopFinder::Differing(std::vector<Group> groups, size_t min_rounds) {
  std::erase_if(groups, [&](const Group& group) { return group.lengths.size() < min_rounds; });
  std::ranges::sort(groups, {}, [](const Group& group) { return *group.loop.threads.begin(); });
  std::vector<Group> differing;
  for (Group& group : groups) {
    const auto same =
        std::ranges::find_if(differing, [&](const Group& other) { return other.IsAlike(group); });
    if (same == differing.end()) {
      differing.push_back(std::move(group));
      continue;
    }
    same->loop.threads.merge(group.loop.threads);
    same->loop.streams.merge(group.loop.streams);
  }
  std::vector<Loop> loops;
  if (differing.size() < 2) return loops;
  std::ranges::transform(differing, std::back_inserter(loops), &Group::loop);
  return loops;
}

std::optional<std::vector<Loop>> LoopFinder::Find() const {
  const std::set<uint32_t> awaited = AwaitedStreams();
  if (awaited.size() < 2) return std::vector<Loop>();
  std::vector<Group> groups = GroupByThread();
  const auto is_awaited = [&](uint32_t stream) { return awaited.contains(stream); };
  std::erase_if(groups, [&](const Group& group) { return std::ranges::none_of(group.streams, is_awaited); });
  size_t known = 0;
  for (const Group& group : groups)
    known += static_cast<size_t>(std::ranges::count_if(group.streams, is_awaited));
  if (known < awaited.size()) return std::nullopt;
  if (groups.size() < 2) return std::vector<Loop>();
  DescribeRounds(groups);
  const bool are_short = std::ranges::any_of(
      groups, [](const Group& group) { return group.lengths.size() < kStepTable.anchor.min_steps; });
  if (are_short) return std::nullopt;
  return Differing(std::move(groups), kStepTable.anchor.min_steps);
}

std::vector<Loop> LoopFinder::FindAtEnd() const {
  if (AwaitedStreams().size() < 2) return {};
  std::vector<Group> groups = GroupByThread();
  DescribeRounds(groups);
  return Differing(std::move(groups), kStepTable.anchor.min_rounds);
}

}  // namespace gpusonde::diagnose
