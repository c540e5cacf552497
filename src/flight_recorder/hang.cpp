// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/printable.h"

namespace gpusonde::flight_recorder {
namespace {

// A straggler must have come last in this share of at least so many collectives, and the others must have
// waited this long for it. Below that, a rank may be last by chance.
constexpr double kMinLastShare = 0.5;
constexpr int64_t kEnoughCollectives = 20;
constexpr double kNoticeableMs = 1;

// Operations whose input has the same size on all ranks. Of others (all_to_all, gather) it may differ.
constexpr std::array<std::string_view, 7> kEvenOperations = {
    "all_reduce", "allreduce", "_all_gather_base", "_reduce_scatter_base", "broadcast", "reduce", "barrier"};

struct GroupKey {
  SharedText name;
  std::vector<int64_t> ranks;
  auto operator<=>(const GroupKey&) const = default;
};

// The calls of one rank in one group, by sequence number. A coalesced operation is several entries with one
// number, of which only the last has a state of its own.
using Calls = std::map<int64_t, const Entry*>;

struct Members {
  SharedText description;
  bool described = false;          // a dump says which ranks the group has
  std::map<int64_t, Calls> calls;  // of the ranks that have a dump
  // Every send and receive of each rank: coalesced ones have one sequence number.
  std::map<int64_t, std::vector<const Entry*>> transfers;
};

int64_t Elements(const Entry& entry) {
  int64_t sum = 0;
  for (const std::vector<int64_t>& sizes : entry.input_sizes) {
    int64_t product = 1;
    for (const int64_t size : sizes)
      if (__builtin_mul_overflow(product, size, &product)) return -1;
    if (__builtin_add_overflow(sum, product, &sum)) return -1;
  }
  return sum;
}

// What has to be the same in the calls of all ranks.
using Signature = std::tuple<SharedText, int64_t, std::vector<SharedText>>;
Signature SignatureOf(const Entry& entry) {
  if (std::ranges::find(kEvenOperations, entry.operation.view()) == kEvenOperations.end())
    return {entry.operation, 0, {}};
  return {entry.operation, Elements(entry), entry.input_types};
}

// "send 0->1" and "recv 1<-0": who sends to whom, as ranks within the group.
struct Transfer {
  bool sends = false;
  size_t from = 0, to = 0;
};
std::optional<Transfer> TransferOf(const Entry& entry) {
  const std::string_view text = entry.operation;
  const bool sends = text.starts_with("send ");
  if (!sends && !text.starts_with("recv ")) return std::nullopt;
  const std::string_view ranks = text.substr(5);
  const size_t arrow = ranks.find(sends ? "->" : "<-");
  if (arrow == std::string_view::npos) return std::nullopt;
  size_t left = 0, right = 0;
  const char* const end = ranks.data() + ranks.size();
  if (std::from_chars(ranks.data(), ranks.data() + arrow, left).ec != std::errc{} ||
      std::from_chars(ranks.data() + arrow + 2, end, right).ec != std::errc{})
    return std::nullopt;
  return sends ? Transfer{true, left, right} : Transfer{false, right, left};
}

// The first call that hasn't completed although all before it have: calls of a group end in their order.
const Entry* FirstPending(const Calls& calls) {
  const Entry* pending = nullptr;
  for (auto at = calls.rbegin(); at != calls.rend() && at->second->state != State::kCompleted; ++at)
    pending = at->second;
  return pending;
}

class Finder {
 public:
  explicit Finder(std::span<const Dump> dumps) : dumps_(dumps) {}

  Result<Hang> Find() {
    for (const Dump& dump : dumps_)
      if (const auto [other, added] = by_rank_.try_emplace(dump.rank, &dump); !added)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} and {} are both of rank {}", other->second->path, dump.path, dump.rank));
    TRY(CollectCalls());
    for (const auto& [key, members] : collectives_) AddCollective(key, members);
    for (const auto& [key, members] : transfers_) AddTransfers(key, members);
    AddSuspects();
    for (const auto& [key, members] : collectives_) AddStragglers(key, members);
    std::ranges::sort(hang_.stragglers, std::greater{},
                      [](const Straggler& one) { return static_cast<double>(one.last) * one.waited_ms; });
    return std::move(hang_);
  }

 private:
  // Groups of different ranks may have the same name (split_group). A group that no dump describes consists
  // of the ranks that used it, as far as is known.
  Status CollectCalls() {
    std::vector<Described> described;  // in each dump
    std::map<SharedText, std::vector<int64_t>> undescribed;
    for (const Dump& dump : dumps_) {
      const Described& in_dump = described.emplace_back(DescribedIn(dump));
      for (const Entry& entry : dump.entries)
        if (GroupIn(in_dump, entry.group) == nullptr) {
          std::vector<int64_t>& ranks = undescribed[entry.group];
          if (ranks.empty() || ranks.back() != dump.rank) ranks.push_back(dump.rank);
        }
    }
    for (auto& [name, ranks] : undescribed) std::ranges::sort(ranks);
    for (size_t i = 0; i < dumps_.size(); ++i) {
      const Dump& dump = dumps_[i];
      for (const Group& group : dump.groups) {
        Members& members = collectives_[{group.name, group.ranks}];
        members.description = group.description;
        members.described = !group.ranks.empty();
        if (std::ranges::binary_search(group.ranks, dump.rank)) members.calls[dump.rank];
      }
      std::unordered_map<std::string_view, std::array<Members*, 2>> known;
      for (const Entry& entry : dump.entries) {
        Members*& members = known[entry.group].at(entry.point_to_point ? 1 : 0);
        if (members == nullptr) {
          ASSIGN_OR_RETURN(
              members, MembersOf(dump, entry, GroupIn(described[i], entry.group), undescribed[entry.group]));
        }
        members->calls[dump.rank].insert_or_assign(entry.sequence, &entry);
        if (entry.point_to_point) members->transfers[dump.rank].push_back(&entry);
      }
    }
    return {};
  }
  // The first group of each name.
  using Described = std::unordered_map<std::string_view, const Group*>;
  static Described DescribedIn(const Dump& dump) {
    Described described;
    for (const Group& group : dump.groups) described.try_emplace(group.name, &group);
    return described;
  }
  static const Group* GroupIn(const Described& described, std::string_view name) {
    const auto found = described.find(name);
    return found == described.end() || found->second->ranks.empty() ? nullptr : found->second;
  }
  // Of the entry's group; `used_by`: the ranks of one that no dump describes.
  Result<Members*> MembersOf(const Dump& dump, const Entry& entry, const Group* group,
                             const std::vector<int64_t>& used_by) {
    if (group != nullptr && !std::ranges::binary_search(group->ranks, dump.rank))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: by the number at the end of its name it is of rank {}, which is not in "
                              "group {}, whose collectives it has; name it after its own rank",
                              dump.path, dump.rank, Printable(entry.group)));
    Members& members =
        (entry.point_to_point ? transfers_
                              : collectives_)[{entry.group, group != nullptr ? group->ranks : used_by}];
    if (group != nullptr) members.description = group->description;
    members.described = members.described || group != nullptr;
    return &members;
  }

  void AddCollective(const GroupKey& key, const Members& members) {
    std::optional<int64_t> sequence;
    for (const auto& [rank, calls] : members.calls)
      if (const Entry* pending = FirstPending(calls))
        sequence = std::min(sequence.value_or(pending->sequence), pending->sequence);
    if (!sequence.has_value()) return;
    Pending pending{.group = {key.name, members.description, key.ranks},
                    .ranks_known = members.described,
                    .sequence = *sequence};
    std::map<Signature, std::vector<Part>> called;
    for (const int64_t rank : key.ranks) {
      const auto calls = members.calls.find(rank);
      if (calls == members.calls.end()) {
        (by_rank_.contains(rank) ? pending.missing : pending.no_dump).push_back({rank});
        continue;
      }
      const auto call = calls->second.find(*sequence);
      if (call != calls->second.end())
        called[SignatureOf(*call->second)].push_back({rank, call->second});
      else if (!calls->second.empty() && calls->second.begin()->first > *sequence)
        pending.completed.push_back({rank});  // so long ago that the ring doesn't hold it
      else
        pending.missing.push_back({rank});
    }
    Divide(called, pending);
    hang_.pending.push_back(std::move(pending));
  }

  // What most ranks called is the operation; on a tie what the lowest rank called.
  static void Divide(std::map<Signature, std::vector<Part>>& called, Pending& pending) {
    const auto most = std::ranges::max_element(called, [](const auto& a, const auto& b) {
      return std::pair(a.second.size(), -a.second.front().rank) <
             std::pair(b.second.size(), -b.second.front().rank);
    });
    pending.operation = std::get<0>(most->first);
    for (const auto& [signature, parts] : called)
      for (const Part& part : parts) {
        if (signature != most->first) pending.different.push_back(part);
        (part.call->state == State::kCompleted ? pending.completed : pending.waiting).push_back(part);
      }
    for (std::vector<Part>* parts : {&pending.waiting, &pending.completed, &pending.different})
      std::ranges::sort(*parts, {}, &Part::rank);
  }

  // The rank of the job for each rank within a group. One that no dump describes has those that called as
  // one of its ranks: "send 1->2" is a call of its rank 1. Two callers as the same rank are of two groups.
  using RanksWithin = std::map<size_t, std::optional<int64_t>>;
  static RanksWithin RanksOf(const GroupKey& key, const Members& members) {
    RanksWithin ranks;
    if (members.described) {
      for (const int64_t rank : key.ranks) ranks.emplace(ranks.size(), rank);
      return ranks;
    }
    for (const auto& [rank, entries] : members.transfers)
      for (const Entry* entry : entries)
        if (const std::optional<Transfer> transfer = TransferOf(*entry); transfer.has_value()) {
          const auto [known, added] =
              ranks.try_emplace(transfer->sends ? transfer->from : transfer->to, rank);
          if (!added && known->second != rank) known->second.reset();
        }
    return ranks;
  }

  // The oldest send or receive of each pair of ranks that one of the two waits in while the other has none.
  void AddTransfers(const GroupKey& key, const Members& members) {
    const RanksWithin ranks = RanksOf(key, members);
    std::set<std::pair<size_t, size_t>> seen;
    for (const auto& [rank, entries] : members.transfers) {
      const Calls& calls = members.calls.at(rank);
      for (const Entry* entry : entries) {
        const Entry& state_of = *calls.at(entry->sequence);
        const std::optional<Transfer> transfer = TransferOf(*entry);
        if (state_of.state == State::kCompleted || !transfer.has_value() ||
            (members.described && std::max(transfer->from, transfer->to) >= key.ranks.size()) ||
            !seen.insert({transfer->from, transfer->to}).second)
          continue;
        const auto peer = ranks.find(transfer->sends ? transfer->to : transfer->from);
        AddTransfer(key, members, {rank, entry}, *transfer,
                    peer == ranks.end() ? std::nullopt : peer->second);
      }
    }
  }
  // `peer`: the other's rank; nothing if it isn't known.
  void AddTransfer(const GroupKey& key, const Members& members, const Part& part, const Transfer& transfer,
                   std::optional<int64_t> peer) {
    if (peer == part.rank) return;
    Pending pending{.group = {key.name, members.description, {part.rank}},
                    .point_to_point = true,
                    .ranks_known = peer.has_value(),
                    .sequence = part.call->sequence,
                    .operation = part.call->operation,
                    .waiting = {part}};
    if (peer.has_value()) {
      pending.group.ranks.push_back(*peer);
      const Entry* answer = OpenTransfer(members, *peer, {!transfer.sends, transfer.from, transfer.to});
      if (answer != nullptr)
        pending.waiting.push_back({*peer, answer});
      else
        (by_rank_.contains(*peer) ? pending.missing : pending.no_dump).push_back({*peer});
    }
    std::ranges::sort(pending.group.ranks);
    std::ranges::sort(pending.waiting, {}, &Part::rank);
    hang_.pending.push_back(std::move(pending));
  }
  static const Entry* OpenTransfer(const Members& members, int64_t rank, const Transfer& wanted) {
    const auto calls = members.calls.find(rank);
    const auto entries = members.transfers.find(rank);
    if (calls == members.calls.end() || entries == members.transfers.end()) return nullptr;
    for (const Entry* entry : entries->second) {
      const std::optional<Transfer> transfer = TransferOf(*entry);
      if (transfer.has_value() && transfer->sends == wanted.sends && transfer->from == wanted.from &&
          transfer->to == wanted.to && calls->second.at(entry->sequence)->state != State::kCompleted)
        return entry;
    }
    return nullptr;
  }

  // A rank that is missing in one operation while it waits in another is not to blame itself, unless the
  // ranks that it waits for wait for it.
  void AddSuspects() {
    std::map<int64_t, size_t> waits_in;  // the oldest operation that each rank waits in
    for (size_t i = 0; i < hang_.pending.size(); ++i)
      for (const Part& part : hang_.pending[i].waiting) {
        const auto [found, added] = waits_in.try_emplace(part.rank, i);
        if (!added && CallOf(hang_.pending[found->second], part.rank)->record > part.call->record)
          found->second = i;
      }
    for (size_t i = 0; i < hang_.pending.size(); ++i) {
      const Pending& pending = hang_.pending[i];
      for (const Part& part : pending.different) Blame(part.rank, Why::kDifferent, i);
      for (const Part& part : pending.no_dump) Blame(part.rank, Why::kNoDump, i);
      for (const Part& part : pending.missing)
        if (!waits_in.contains(part.rank)) Blame(part.rank, Why::kNotCalled, i);
      if (pending.missing.empty() && pending.no_dump.empty() && pending.different.empty()) AddLateGpus(i);
    }
    if (hang_.suspects.empty()) AddDeadlock(waits_in);
    std::ranges::stable_sort(hang_.suspects, {}, &Suspect::rank);
  }
  static const Entry* CallOf(const Pending& pending, int64_t rank) {
    return std::ranges::find(pending.waiting, rank, &Part::rank)->call;
  }
  // If the GPUs of some ranks have begun the operation, those that haven't run something else.
  void AddLateGpus(size_t at) {
    const auto has_started = [](const Part& part) { return part.call->state == State::kStarted; };
    const std::vector<Part>& waiting = hang_.pending[at].waiting;
    if (!std::ranges::any_of(waiting, has_started)) return;
    for (const Part& part : waiting)
      if (!has_started(part)) Blame(part.rank, Why::kGpuBehind, at);
  }
  // Every missing rank waits elsewhere: those that are both waited for and wait form at least one circle.
  void AddDeadlock(const std::map<int64_t, size_t>& waits_in) {
    for (size_t i = 0; i < hang_.pending.size(); ++i)
      for (const Part& part : hang_.pending[i].missing)
        if (const auto where = waits_in.find(part.rank); where != waits_in.end() && LeadsBack(i, waits_in)) {
          Blame(part.rank, Why::kDeadlock, i).waits_in = where->second;
        }
  }
  // Whether following the missing ranks from this operation leads to it again.
  bool LeadsBack(size_t from, const std::map<int64_t, size_t>& waits_in) const {
    std::set<size_t> reached;
    std::vector<size_t> open{from};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (const Part& part : hang_.pending[at].missing) {
        const auto where = waits_in.find(part.rank);
        if (where == waits_in.end()) continue;
        if (where->second == from) return true;
        if (reached.insert(where->second).second) open.push_back(where->second);
      }
    }
    return false;
  }
  // A rank that is missing in several operations is named once, with that in which most others wait.
  Suspect& Blame(int64_t rank, Why why, size_t pending) {
    const auto [known, is_new] = suspects_.try_emplace({rank, why}, hang_.suspects.size());
    if (!is_new) {
      Suspect& before = hang_.suspects[known->second];
      if (hang_.pending[pending].waiting.size() > hang_.pending[before.pending].waiting.size())
        before.pending = pending;
      return before;
    }
    const auto dump = by_rank_.find(rank);
    const Entry* last =
        dump == by_rank_.end() || dump->second->entries.empty() ? nullptr : &dump->second->entries.back();
    return hang_.suspects.emplace_back(
        Suspect{.rank = rank, .why = why, .pending = pending, .waits_in = {}, .last_call = last});
  }

  // Who comes last finds the others waiting, so its own part is the shortest. Unlike the times of the calls,
  // durations don't depend on the clocks of different hosts.
  void AddStragglers(const GroupKey& key, const Members& members) {
    if (key.ranks.size() < 2 || members.calls.size() != key.ranks.size()) return;
    std::map<int64_t, Straggler> found;
    int64_t timed = 0;
    for (const auto& [sequence, first] : members.calls.begin()->second) {
      std::vector<std::pair<double, int64_t>> durations;
      for (const auto& [rank, calls] : members.calls) {
        const auto call = calls.find(sequence);
        if (call == calls.end() || !call->second->duration_ms.has_value()) break;
        durations.emplace_back(*call->second->duration_ms, rank);
      }
      if (durations.size() != key.ranks.size()) continue;
      ++timed;
      std::ranges::sort(durations);
      double sum = 0;
      for (const auto& [ms, rank] : durations) sum += ms - durations.front().first;
      Straggler& last = found[durations.front().second];
      ++last.last;
      last.waited_ms += sum / static_cast<double>(durations.size() - 1);
    }
    hang_.timed += timed;
    if (timed < kEnoughCollectives) return;
    for (auto& [rank, one] : found) {
      one.rank = rank;
      one.group = key.name;
      one.description = members.description;
      one.collectives = timed;
      one.waited_ms /= static_cast<double>(one.last);
      if (static_cast<double>(one.last) >= kMinLastShare * static_cast<double>(timed) &&
          one.waited_ms >= kNoticeableMs)
        hang_.stragglers.push_back(one);
    }
  }

  std::span<const Dump> dumps_;
  std::map<int64_t, const Dump*> by_rank_;
  std::map<GroupKey, Members> collectives_, transfers_;
  std::map<std::pair<int64_t, Why>, size_t> suspects_;  // indices of hang_.suspects, until these are sorted
  Hang hang_;
};

}  // namespace

std::string_view Name(Why why) {
  switch (why) {
    case Why::kNotCalled:
      return "not_called";
    case Why::kNoDump:
      return "no_dump";
    case Why::kDifferent:
      return "different";
    case Why::kGpuBehind:
      return "gpu_behind";
    case Why::kDeadlock:
      return "deadlock";
  }
  return "";
}

Result<Hang> FindHang(std::span<const Dump> dumps) { return Finder(dumps).Find(); }

}  // namespace gpusonde::flight_recorder
