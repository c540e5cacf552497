// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/work_summer.h"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>

#include "base/saturated.h"
#include "store/rollups/work_sums.h"

namespace gpusonde::store {
namespace {

// 2^64 / φ: spreads the bits of small numbers.
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

uint64_t Mixed(uint64_t hash, uint64_t more) { return (std::rotl(hash, 23) ^ more) * kGolden; }

model::KernelWindow RowOf(const WorkSummer::KindKey& key, model::WorkPart part) {
  return {.part = part,
          .process = key.process,
          .device = key.device,
          .name = std::string(key.name),
          .graph = key.graph,
          .stream = key.stream,
          .stack = key.captured,
          .tid = std::nullopt,
          .sketch = {}};
}

}  // namespace

size_t WorkSummer::Hash::operator()(const KindKey& key) const {
  uint64_t hash = Mixed(key.process.low, key.device.low);
  hash = Mixed(hash, static_cast<uint64_t>(key.stream) << 1 | (key.graph ? 1 : 0));
  if (key.captured.has_value()) hash = Mixed(hash, key.captured->low);
  return Mixed(hash, std::hash<std::string_view>()(key.name));
}

size_t WorkSummer::Hash::operator()(const std::pair<Id128, int64_t>& origin) const {
  return Mixed(origin.first.low, static_cast<uint64_t>(origin.second));
}

uint32_t WorkSummer::OriginOf(const Id128& process, int64_t session) {
  return origins_.try_emplace({process, session}, static_cast<uint32_t>(origins_.size())).first->second;
}

void WorkSummer::AddLaunch(const Launch& launch) {
  const auto [caller, is_new] =
      caller_numbers_.try_emplace({launch.stack, launch.tid}, static_cast<uint32_t>(callers_.size()));
  if (is_new) callers_.emplace_back(launch.stack, launch.tid);
  launches_.push_back({.correlation = launch.correlation,
                       .start_ns = launch.start_ns,
                       .probability = launch.probability,
                       .origin = OriginOf(launch.process, launch.session),
                       .caller = caller->second});
}

// Ids are given in turn, so launches that follow each other lie in slots that do: no hash of all bits would
// be as fast. That of the higher ones spreads ids that are multiples of the number of slots.
size_t WorkSummer::SlotOf(uint32_t origin, int64_t correlation) const {
  const uint64_t higher = (static_cast<uint64_t>(correlation) >> 16) + origin * kGolden;
  return (static_cast<uint64_t>(correlation) + (higher * kGolden >> 32)) & (slots_.size() - 1);
}

void WorkSummer::IndexLaunches() {
  // Launches that begin together by their stacks, so that the same ones count in any order.
  const auto is_less = [this](const Started& a, const Started& b) {
    const auto key = [](const Started& launch) {
      return std::tuple(launch.origin, launch.correlation, launch.start_ns);
    };
    return key(a) != key(b) ? key(a) < key(b) : callers_[a.caller] < callers_[b.caller];
  };
  // Those of one process mostly are.
  if (!std::ranges::is_sorted(launches_, is_less)) std::ranges::sort(launches_, is_less);
  slots_.assign(std::bit_ceil(2 * launches_.size()), kNone);
  for (size_t i = 0; i < launches_.size(); ++i) {
    if (i > 0 && IsOf(i - 1, launches_[i].origin, launches_[i].correlation)) continue;
    uint32_t& slot = slots_[SlotOf(launches_[i].origin, launches_[i].correlation)];
    launches_[i].next = slot;
    slot = static_cast<uint32_t>(i);
  }
}

bool WorkSummer::IsOf(size_t launch, uint32_t origin, int64_t correlation) const {
  return launch < launches_.size() && launches_[launch].correlation == correlation &&
         launches_[launch].origin == origin;
}

WorkSummer::Kind& WorkSummer::KindOf(const KindKey& key) {
  const auto found = kinds_.find(key);
  if (found != kinds_.end()) return found->second;
  Key owned{key.process, key.device, std::string(key.name), key.stream, key.graph, key.captured};
  const auto number = static_cast<uint32_t>(kinds_.size());
  const auto [entry, is_new] = kinds_.try_emplace(std::move(owned));
  entry->second.number = number;
  entry->second.process = key.process;
  entry->second.captured = key.captured.has_value();
  return entry->second;
}

void WorkSummer::Add(Kind& kind, int64_t session, std::optional<int64_t> correlation, int64_t start_ns,
                     int64_t duration_ns) {
  ++kind.count;
  kind.duration_ns = AddSaturated(kind.duration_ns, duration_ns);
  if (sketches_) kind.sketch.Add(duration_ns);
  if (launches_.empty() || !correlation.has_value() || kind.captured) return;
  if (kind.session != session) {
    kind.session = session;
    kind.origin = OriginOf(kind.process, session);
  }
  if (slots_.empty()) IndexLaunches();
  AddToLaunch(kind.number, kind.origin, *correlation, start_ns, duration_ns);
}

WorkSummer::Started* WorkSummer::FindLaunch(uint32_t origin, int64_t correlation, int64_t start_ns) {
  size_t first = slots_[SlotOf(origin, correlation)];
  while (first != kNone && !IsOf(first, origin, correlation)) first = launches_[first].next;
  if (first == kNone) return nullptr;
  size_t after = first;
  if (IsOf(first + 1, origin, correlation)) {
    const auto is_before = [&](const Started& launch) {
      return std::tuple(launch.origin, launch.correlation, launch.start_ns) <=
             std::tuple(origin, correlation, start_ns);
    };
    const auto rest = std::span(launches_).subspan(first);
    after = first + static_cast<size_t>(std::ranges::partition_point(rest, is_before) - rest.begin());
  } else if (launches_[first].start_ns <= start_ns) {
    ++after;
  }
  if (after > first && MayHaveStarted(launches_[after - 1].start_ns, start_ns)) return &launches_[after - 1];
  // The GPU's clock may be behind.
  const bool is_later =
      IsOf(after, origin, correlation) && MayHaveStarted(launches_[after].start_ns, start_ns);
  return is_later ? &launches_[after] : nullptr;
}

void WorkSummer::AddToLaunch(uint32_t kind, uint32_t origin, int64_t correlation, int64_t start_ns,
                             int64_t duration_ns) {
  Started* const launch = FindLaunch(origin, correlation, start_ns);
  if (launch == nullptr) return;
  if (launch->kind == kNone) launch->kind = kind;
  const auto index = static_cast<uint32_t>(launch - launches_.data());
  int64_t& together_ns = launch->kind == kind ? launch->duration_ns : started_more_[Pair(index, kind)];
  together_ns = AddSaturated(together_ns, duration_ns);
}

// A launch is sampled whole, so all that it started of a kind is one duration.
void WorkSummer::Sum(const Started& launch, uint32_t kind, int64_t duration_ns) {
  Sampled& sampled = sampled_[Pair(kind, launch.caller)];
  const double p = launch.probability;
  const auto duration = static_cast<double>(duration_ns);
  sampled.weight += 1 / p;
  sampled.time_ns += duration / p;
  sampled.variance_ns2 += (1 - p) / (p * p) * duration * duration;
}

void WorkSummer::EndSlice() {
  for (const Started& launch : launches_)
    if (launch.kind != kNone) Sum(launch, launch.kind, launch.duration_ns);
  for (const auto& [launch_and_kind, duration_ns] : started_more_)
    Sum(launches_[launch_and_kind >> 32], static_cast<uint32_t>(launch_and_kind), duration_ns);
  launches_.clear();
  slots_.clear();
  started_more_.clear();
}

std::vector<model::KernelWindow> WorkSummer::Rows() const {
  // By key, so that equal work gives equal rows.
  std::vector<std::pair<KindKey, const Kind*>> kinds;
  for (const auto& [key, kind] : kinds_)
    if (kind.count > 0) kinds.emplace_back(key.View(), &kind);
  std::ranges::sort(kinds, {}, &std::pair<KindKey, const Kind*>::first);
  std::vector<model::KernelWindow> rows;
  std::vector<size_t> places(kinds_.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto& [key, kind] = kinds[i];
    places[kind->number] = i;
    model::KernelWindow row =
        RowOf(key, key.captured.has_value() ? model::WorkPart::kCaptured : model::WorkPart::kAll);
    row.count = kind->count;
    row.duration_ns = kind->duration_ns;
    kind->sketch.ForEach([&row](uint32_t bucket, uint64_t count) {
      row.sketch.push_back(bucket);
      row.sketch.push_back(static_cast<int64_t>(count));
    });
    rows.push_back(std::move(row));
  }
  using Entry = std::tuple<size_t, std::pair<Id128, int32_t>, Sampled>;
  std::vector<Entry> sampled;
  for (const auto& [kind_and_caller, sums] : sampled_)
    sampled.emplace_back(places[kind_and_caller >> 32], callers_[static_cast<uint32_t>(kind_and_caller)],
                         sums);
  std::ranges::sort(sampled, {},
                    [](const Entry& entry) { return std::pair(std::get<0>(entry), std::get<1>(entry)); });
  for (const auto& [place, caller, sums] : sampled) {
    model::KernelWindow row = RowOf(kinds[place].first, model::WorkPart::kSampled);
    row.stack = caller.first;
    row.tid = caller.second;
    row.weight = sums.weight;
    row.time_ns = sums.time_ns;
    row.variance_ns2 = sums.variance_ns2;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gpusonde::store
