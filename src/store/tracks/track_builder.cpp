// SPDX-License-Identifier: Apache-2.0
#include "store/tracks/track_builder.h"

#include <algorithm>
#include <utility>

#include "base/demangle.h"
#include "base/saturated.h"

namespace gpusonde::store {
namespace {

constexpr std::string_view kOtherNames = "[other names]";
constexpr std::string_view kNoName = "[no name]";

bool IsOfThread(TrackKind kind) { return kind != TrackKind::kStream && kind != TrackKind::kSteps; }

// What a screen can show and a browser hold: kernels of templates have names of some hundred bytes.
std::string Shown(const EventName& name) {
  if (name.text.empty()) return std::string(kNoName);
  std::string text = name.kind == EventKind::kKernel ? Demangle(name.text) : name.text;
  if (text.size() > TrackBuilder::kMaxNameBytes) {
    text.resize(TrackBuilder::kMaxNameBytes);
    text += "…";
  }
  return text;
}

}  // namespace

int32_t TrackBuilder::NameOf(EventKind kind, std::string_view text) {
  NameIndices& indices = name_indices_[kind];
  if (const auto known = indices.find(text); known != indices.end()) return known->second;
  if (names_.size() >= kMaxNames && text != kOtherNames) return NameOf(kind, kOtherNames);
  const auto index = static_cast<int32_t>(names_.size());
  names_.push_back({kind, std::string(text)});
  indices.emplace(text, index);
  return index;
}

TrackBuilder::Building* TrackBuilder::Find(const TrackKey& key) {
  if (const auto known = tracks_.find(key); known != tracks_.end()) return &known->second;
  if (choice_.has_value()) return nullptr;
  if (tracks_.size() >= kMaxTracksBuilt) {
    if (not_built_.size() < kMaxTracksBuilt) not_built_.insert(key);
    return nullptr;
  }
  Building& added = tracks_.try_emplace(key, grid_).first->second;
  if (counts_only_) added.CountOnly();
  return &added;
}

template <class Action>
void TrackBuilder::AddTo(Building& building, const Action& add) {
  const size_t before = building.bytes();
  add();
  bytes_ += building.bytes() - before;
  if (bytes_ <= max_bytes_ || counts_only_ || choice_.has_value()) return;
  counts_only_ = true;
  for (auto& [key, track] : tracks_) track.CountOnly();
}

void TrackBuilder::Add(const TrackKey& key, const TimeRange& event, int32_t row, int32_t name) {
  if (Building* const building = Find(key); building != nullptr)
    AddTo(*building, [&] { building->slices.Add(event, row, name); });
}

void TrackBuilder::AddState(const TrackKey& key, const TimeRange& bucket, int32_t name, int64_t time_ns) {
  const TimeRange& range = grid_.range;
  if (time_ns <= 0 || bucket.to_ns <= bucket.from_ns) return;
  if (bucket.to_ns <= range.from_ns || std::min(bucket.from_ns, bucket.to_ns - time_ns) >= range.to_ns)
    return;
  Building* const building = Find(key);
  if (building == nullptr) return;
  if (names_[static_cast<size_t>(name)].text == kThreadStates[0])
    building->running_ns = AddSaturated(building->running_ns, std::min(time_ns, range.to_ns - range.from_ns));
  AddTo(*building, [&] { building->states.Add(bucket, name, time_ns); });
}

std::set<std::pair<Id128, int32_t>> TrackBuilder::Threads() const {
  std::set<std::pair<Id128, int32_t>> threads;
  for (const auto& [key, building] : tracks_)
    if (IsOfThread(key.kind)) threads.emplace(key.process, static_cast<int32_t>(key.lane));
  return threads;
}

void TrackBuilder::Remove(const Id128& process, int32_t tid) {
  std::erase_if(tracks_, [&](const auto& track) {
    return IsOfThread(track.first.kind) && track.first.process == process && track.first.lane == tid;
  });
}

std::vector<TrackKey> TrackBuilder::InOrder() const {
  struct Time {
    int64_t gpu_ns = 0;
    int64_t cpu_ns = 0;
  };
  std::map<Id128, Time> of_process;
  std::map<std::pair<Id128, int64_t>, int64_t> of_thread;
  for (const auto& [key, building] : tracks_) {
    const int64_t busy_ns = AddSaturated(building.running_ns, building.slices.busy_ns());
    const auto add = [busy_ns](int64_t& sum_ns) { sum_ns = AddSaturated(sum_ns, busy_ns); };
    if (key.kind == TrackKind::kStream) add(of_process[key.process].gpu_ns);
    if (!IsOfThread(key.kind)) continue;
    add(of_thread[{key.process, key.lane}]);
    add(of_process[key.process].cpu_ns);
  }
  const auto place = [&](const TrackKey& key) {
    const bool is_stream = key.kind == TrackKind::kStream;
    const Time time = of_process[key.process];
    const int64_t thread_ns = IsOfThread(key.kind) ? of_thread[{key.process, key.lane}] : 0;
    return std::tuple(!is_stream, is_stream ? key.device : Id128(), -time.gpu_ns, -time.cpu_ns, key.process,
                      IsOfThread(key.kind), -thread_ns, key.lane, key.kind);
  };
  std::vector<std::pair<decltype(place(TrackKey())), TrackKey>> places;
  for (const auto& [key, building] : tracks_) places.emplace_back(place(key), key);
  std::ranges::sort(places);
  std::vector<TrackKey> keys;
  for (const auto& [at, key] : places) keys.push_back(key);
  return keys;
}

TrackBuilder::Choice TrackBuilder::Choose() const {
  Choice choice;
  for (const auto& [key, building] : tracks_) choice.events += building.slices.events();
  choice.omitted = static_cast<int64_t>(not_built_.size());
  size_t slices = 0;
  bool is_full = false;
  for (const TrackKey& key : InOrder()) {
    const size_t count = tracks_.at(key).slice_count();
    if (count == 0) continue;  // all its events were outside the range
    slices += count;
    is_full = is_full || choice.shown.size() == kMaxTracks || slices > kMaxSlices;
    if (is_full)
      ++choice.omitted;
    else
      choice.shown.push_back(key);
  }
  return choice;
}

bool TrackBuilder::NeedsSecondPass() {
  if (!std::exchange(counts_only_, false)) return false;
  choice_ = Choose();
  tracks_.clear();
  for (const TrackKey& key : choice_->shown) tracks_.try_emplace(key, grid_);
  return true;
}

Track TrackBuilder::TakeTrack(const TrackKey& key) {
  Building& building = tracks_.at(key);
  Track track{.kind = key.kind, .process = key.process, .thread = "", .slices = {}};
  track.rows = std::max(building.slices.rows(), 1);
  track.slices = building.slices.Take();
  const std::vector<Slice> states = building.states.Take();
  track.slices.insert(track.slices.end(), states.begin(), states.end());
  if (key.kind == TrackKind::kStream) {
    track.device = key.device;
    track.stream = key.lane;
  } else if (IsOfThread(key.kind) || key.lane != 0) {
    track.tid = static_cast<int32_t>(key.lane);
  }
  return track;
}

Tracks TrackBuilder::Take() {
  const Choice choice = choice_.has_value() ? *choice_ : Choose();
  Tracks taken{.grid = grid_,
               .events = choice.events,
               .names = {},
               .devices = {},
               .processes = {},
               .users = {},
               .tracks = {},
               .omitted = choice.omitted};
  std::vector<int32_t> renumbered(names_.size(), -1);
  for (const TrackKey& key : choice.shown) {
    if (!tracks_.contains(key)) continue;  // removed in the second pass
    Track track = TakeTrack(key);
    for (Slice& slice : track.slices) {
      int32_t& index = renumbered[static_cast<size_t>(slice.name)];
      if (index < 0) {
        index = static_cast<int32_t>(taken.names.size());
        const EventName& name = names_[static_cast<size_t>(slice.name)];
        taken.names.push_back({name.kind, Shown(name)});
      }
      slice.name = index;
    }
    taken.tracks.push_back(std::move(track));
  }
  tracks_.clear();
  return taken;
}

}  // namespace gpusonde::store
