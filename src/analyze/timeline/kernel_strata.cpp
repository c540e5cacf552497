// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/kernel_strata.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "analyze/stats/squares.h"

namespace gpusonde::analyze {

void Stratum::Merge(const Stratum& other) {
  sum.Merge(other.sum);
  logs.Merge(other.logs);
  alone.Merge(other.alone);
  for (const auto& [copy, moments] : other.with_copy) with_copy[copy].Merge(moments);
}

void NameResult::Merge(const NameResult& other) {
  std::vector<SlowKernel> both;
  std::ranges::merge(slowest, other.slowest, std::back_inserter(both), {}, &SlowKernel::Key,
                     &SlowKernel::Key);
  both.resize(std::min(both.size(), kSlowest));
  slowest = std::move(both);
  between_windows += other.between_windows;
  windows += other.windows;
  if (other.launches.variance > launches.variance) launches = other.launches;
  MergeCounts(durations, other.durations);
}

void KernelStrata::Gathered::Merge(const Gathered& other) {
  stratum.Merge(other.stratum);
  if (windows.empty()) windows.resize(other.windows.size());
  for (size_t i = 0; i < other.windows.size(); ++i) windows[i].Merge(other.windows[i]);
}

void KernelStrata::NameSums::AddSlow(const SlowKernel& kernel) {
  if (slowest.size() == kSlowest) {
    if (kernel.duration_ns < slowest.front().duration_ns) return;  // nearly always
    if (slowest.front().Key() < kernel.Key()) return;
    std::ranges::pop_heap(slowest, {}, &SlowKernel::Key);
    slowest.pop_back();
  }
  slowest.push_back(kernel);
  std::ranges::push_heap(slowest, {}, &SlowKernel::Key);
}

KernelStrata::KernelStrata(std::span<const uint64_t> name_hashes, std::span<const Durations> durations,
                           int64_t first_ns, int64_t last_ns)
    : name_hashes_(name_hashes),
      durations_(durations),
      first_ns_(first_ns),
      span_ns_(std::max<int64_t>(1, last_ns - first_ns)),
      strata_(kMaxStrata),
      streams_(kMaxStrata),
      names_(kMaxNames),
      recent_places_(kRecentPlaces),
      windows_(kWindows) {
  window_end_ns_ = EdgeOf(1);
}

int64_t KernelStrata::EdgeOf(size_t window) const {
  return first_ns_ +
         static_cast<int64_t>((Int128{span_ns_} * static_cast<int64_t>(window) + kWindows - 1) / kWindows);
}

size_t KernelStrata::WindowOf(int64_t time_ns) {
  while (window_ + 1 < kWindows && time_ns >= window_end_ns_) window_end_ns_ = EdgeOf(++window_ + 1);
  return window_;
}

uint64_t KernelStrata::HashOf(uint32_t name, uint32_t other) const {
  return MixBits(name_hashes_[name] ^ MixBits(other));
}

KernelStrata::Place KernelStrata::FindPlace(const GpuRecord& event, bool is_communication) {
  Place place{.name = event.name, .shape = event.shape, .stream = event.stream};
  bool is_new = false;
  place.sums = &names_.At(MixBits(name_hashes_[event.name]), is_new);
  if (is_new) {
    place.sums->name = event.name;
    place.sums->windows.resize(kWindows);
    if (event.name < durations_.size() && IsStable(durations_[event.name].sketch))
      place.sums->fine = std::make_unique<FineCounts>(durations_[event.name].sketch);
  }
  place.fine = place.sums->fine.get();
  place.on_stream = &streams_.At(HashOf(event.name, event.stream), is_new);
  if (is_new) {
    place.on_stream->name = event.name;
    place.on_stream->stream = event.stream;
  }
  place.hash = HashOf(event.name, event.shape);
  place.stratum = &strata_.At(place.hash, is_new);
  if (is_new) {
    place.stratum->stratum.name = event.name;
    place.stratum->stratum.shape = event.shape;
    if (!is_communication) place.stratum->windows.resize(kWindows);
  }
  return place;
}

const KernelStrata::Place& KernelStrata::PlaceOf(const GpuRecord& event, bool is_communication) {
  const uint32_t mixed = event.name * 37 + event.shape + event.stream * 5;
  Place& recent = recent_places_[(mixed ^ mixed >> 16) % kRecentPlaces];
  if (moves_ == Moves() && recent.sums != nullptr && recent.name == event.name &&
      recent.shape == event.shape && recent.stream == event.stream)
    return recent;
  const Place place = FindPlace(event, is_communication);
  if (moves_ != Moves()) {
    recent_places_.assign(kRecentPlaces, {});
    moves_ = Moves();
  }
  return recent = place;
}

void KernelStrata::Kernel(const GpuRecord& event, bool is_communication) {
  const int64_t duration_ns = event.end_ns - event.start_ns;
  const size_t window = WindowOf(event.start_ns);
  const Place& place = PlaceOf(event, is_communication);
  if (!place.sums->windows.empty()) {
    place.sums->windows[window].Add(duration_ns);
    if (place.fine != nullptr) place.fine->Add(duration_ns);
    place.sums->AddSlow({.duration_ns = duration_ns, .start_ns = event.start_ns, .stream = event.stream});
  }
  place.on_stream->sum.Add(duration_ns);
  Gathered& gathered = *place.stratum;
  const int32_t log = FixedLog2(duration_ns);
  gathered.stratum.sum.Add(duration_ns);
  gathered.stratum.logs.Add(log);
  if (is_communication) return copies_.Other(event);
  windows_[window].Add(duration_ns);
  if (!gathered.windows.empty()) gathered.windows[window].Add(log);
  copies_.Kernel(event, place.hash, log, known_);
  TakeKnown();
}

void KernelStrata::Copy(const GpuRecord& event) {
  copies_.Copy(event, known_);
  TakeKnown();
}

void KernelStrata::TakeKnown() {
  for (const WatchedKernel& kernel : known_) {
    bool is_new = false;
    Stratum& stratum = strata_.At(kernel.stratum, is_new).stratum;
    stratum.with_copy[kernel.copy.Pack()].Add(kernel.log);
  }
  known_.clear();
}

// Under the null hypothesis, the c kernels of a stratum in a window are drawn from its n, so the sum of their
// logarithms has the variance c · s² · (1 − c/n).
void KernelStrata::MeasureWindows(std::vector<Window>& windows) const {
  windows.resize(kWindows);
  for (size_t i = 0; i < kWindows; ++i) {
    const auto edge = [&](size_t at) {
      return first_ns_ + static_cast<int64_t>(Int128{span_ns_} * static_cast<int64_t>(at) / kWindows);
    };
    windows[i].begin_ns = edge(i);
    windows[i].end_ns = edge(i + 1);
    windows[i].kernel_ns = static_cast<int64_t>(windows_[i].total_ns);
  }
  for (const auto& [hash, gathered] : strata_.entries()) {
    const LogMoments& all = gathered.stratum.logs;
    if (all.count < 2 || gathered.windows.empty()) continue;
    const double mean = all.Mean();
    const double variance = all.Variance();
    const double typical_ns = std::exp2(mean / kLogUnits);
    for (size_t i = 0; i < kWindows; ++i) {
      const auto count = static_cast<double>(gathered.windows[i].count);
      if (count == 0) continue;
      windows[i].kernels += gathered.windows[i].count;
      const auto sum = static_cast<double>(gathered.windows[i].sum);
      windows[i].excess += sum - count * mean;
      windows[i].taken_ns += count * std::exp2(sum / count / kLogUnits);
      windows[i].expected_ns += count * typical_ns;
      windows[i].variance += count * variance * (1 - count / static_cast<double>(all.count));
    }
  }
}

KernelResult KernelStrata::Finish() {
  copies_.Finish(known_);
  TakeKnown();
  strata_.Finish();
  streams_.Finish();
  names_.Finish();
  KernelResult result;
  MeasureWindows(result.windows);
  for (auto& [hash, gathered] : strata_.entries()) {
    gathered.stratum.log_error = ErrorOfMean(gathered.windows);
    if (!gathered.windows.empty()) gathered.stratum.alone = gathered.stratum.logs;
    for (const auto& [copy, moments] : gathered.stratum.with_copy) gathered.stratum.alone.Remove(moments);
    result.strata.push_back(std::move(gathered.stratum));
  }
  for (auto& [hash, stream] : streams_.entries()) result.streams.push_back(stream);
  for (auto& [hash, name] : names_.entries()) {
    NameResult& found = result.names[name.name];
    std::ranges::sort(name.slowest, {}, &SlowKernel::Key);
    found.slowest = std::move(name.slowest);
    if (name.fine != nullptr) found.durations = name.fine->Finish();
    found.between_windows = SquaresBetween(name.windows);
    std::vector<int64_t> launches;
    for (const Sum& window : name.windows) launches.push_back(window.count);
    found.launches = RelativeErrorOfMean(launches);
    found.windows = std::ranges::count_if(name.windows, [](const Sum& sum) { return sum.count > 0; });
  }
  return result;
}

}  // namespace gpusonde::analyze
