// SPDX-License-Identifier: Apache-2.0
#include "diagnose/process_loops.h"

#include <algorithm>
#include <utility>

#include "diagnose/step_table.h"

namespace gpusonde::diagnose {

Diagnosis::ProcessLoops::ProcessLoops(const Id128& process, Shared& shared, const Options& options)
    : search_(Search()) {
  loops_.push_back(std::make_unique<Workload>(process, shared, options));
}

void Diagnosis::ProcessLoops::Ingest(const Work& work, std::span<const WorkTime> times, const Origin& from) {
  if (times.empty() || ended_ns().has_value()) return;
  for (const WorkTime& time : times) watermark_.Ingest(time.end_ns);
  BeginSearchIfNew(work, from.on);
  if (search_.has_value()) {
    search_->any = true;
    for (const WorkTime& time : times) {
      search_->oldest_ns = std::min(search_->oldest_ns, time.end_ns);
      search_->newest_ns = std::max(search_->newest_ns, time.end_ns);
    }
    search_->finder.Ingest(from.on, work, times, from.session, from.correlations);
  }
  if (!holds_) return Route(work, times, from.on, from.tid);
  held_.push_back({work, std::string(work.name), {times.begin(), times.end()}, from.on, from.tid});
  held_pieces_ += times.size();
  if (held_pieces_ > kStepTable.loops.max_pieces) EndSearch();
}

void Diagnosis::ProcessLoops::Ingest(const model::ApiCall& call) {
  if (search_.has_value()) search_->finder.IngestCall(call.session, call.correlation, call.tid);
  CountThread(call.tid, call.start_ns);
}

void Diagnosis::ProcessLoops::CountThread(int32_t tid, int64_t time_ns) {
  if (!holds_) return LoopOf({}, tid).CountThread(tid, time_ns);
  search_->any = true;
  held_threads_.emplace_back(tid, time_ns);
  if (held_threads_.size() > kStepTable.loops.max_pieces) EndSearch();
}

void Diagnosis::ProcessLoops::Ingest(const model::GpuSession& session) {
  bool begins = false;
  for (const auto& loop : loops_) begins |= loop->Ingest(session);
  if (begins) watermark_.ForgetOutOfOrderness();
}

void Diagnosis::ProcessLoops::Ingest(const model::Incident& incident) {
  earlier_.push_back(incident);
  for (const auto& loop : loops_) loop->Ingest(incident);
}

void Diagnosis::ProcessLoops::MarkUnobserved(int64_t from_ns, int64_t to_ns) {
  for (const auto& loop : loops_) loop->MarkUnobserved(from_ns, to_ns);
}

void Diagnosis::ProcessLoops::Advance(int64_t now_ns, int64_t allowed_lateness_ns) {
  const int64_t watermark_ns = watermark_.Advance(now_ns, allowed_lateness_ns);
  if (search_.has_value()) Look(now_ns, allowed_lateness_ns);
  if (holds_) return;
  for (const auto& loop : loops_) loop->Advance(now_ns, watermark_ns, allowed_lateness_ns);
}

void Diagnosis::ProcessLoops::Finish(int64_t time_ns) {
  EndSearch();
  for (const auto& loop : loops_) loop->Finish(time_ns);
}

void Diagnosis::ProcessLoops::Abandon(int64_t time_ns) {
  EndSearch();
  for (const auto& loop : loops_) loop->Abandon(time_ns);
}

// A thread may begin a loop at any time: a wait for a stream that nothing waited for before is a sign of it.
void Diagnosis::ProcessLoops::BeginSearchIfNew(const Work& work, const Stream& on) {
  if (work.kind != Work::Kind::kSync || on.stream < 0 || awaited_.size() >= kStepTable.loops.max_streams ||
      !awaited_.insert(on).second)
    return;
  if (!search_.has_value()) search_ = Search();
}

// Looks for loops in what has come since the search began. Rounds of a second and more take longer to show.
void Diagnosis::ProcessLoops::Look(int64_t now_ns, int64_t allowed_lateness_ns) {
  const auto& table = kStepTable.loops;
  if (!search_->any) return;
  if (search_->begun_ns == 0) search_->begun_ns = now_ns;
  const int64_t passed_ns = now_ns - search_->begun_ns;
  const int64_t least_ns = kStepTable.finder.min_history_ns;
  const bool suffices =
      search_->newest_ns > search_->oldest_ns && search_->newest_ns - search_->oldest_ns >= least_ns;
  if (now_ns < search_->next_ns || (!suffices && passed_ns < least_ns + allowed_lateness_ns)) return;
  search_->next_ns = now_ns + table.pause_ns;
  const std::optional<std::vector<Loop>> found = search_->finder.Find();
  if (found.has_value() && (!found->empty() || holds_ || passed_ns >= table.held_ns))
    Conclude(*found);
  else if (passed_ns >= table.searched_ns)
    EndSearch();
  else if (passed_ns >= table.held_ns)
    Release();
}

void Diagnosis::ProcessLoops::EndSearch() {
  if (search_.has_value()) Conclude(search_->finder.FindAtEnd());
}

void Diagnosis::ProcessLoops::Conclude(const std::vector<Loop>& found) {
  Split(found);
  search_.reset();
  Release();
}

void Diagnosis::ProcessLoops::Split(const std::vector<Loop>& found) {
  const auto knows_as_first = [&](const Loop& loop) {
    return std::ranges::any_of(loop.streams, [&](const Stream& stream) {
      const auto known = by_stream_.find(stream);
      return known != by_stream_.end() && known->second == 0;
    });
  };
  auto first = std::ranges::find_if(found, knows_as_first);
  if (first == found.end() && loops_.size() == 1) first = found.begin();
  for (auto loop = found.begin(); loop != found.end(); ++loop) {
    const size_t index = loop == first ? 0 : IndexOf(*loop);
    for (const Stream& stream : loop->streams) by_stream_.insert_or_assign(stream, index);
    for (const int32_t tid : loop->threads) by_thread_.insert_or_assign(tid, index);
  }
  for (const Stream& stream : awaited_) by_stream_.emplace(stream, 0);
}

// The index of this loop, which isn't the first; a new one unless some of its streams are known as another's.
size_t Diagnosis::ProcessLoops::IndexOf(const Loop& loop) {
  for (const Stream& stream : loop.streams)
    if (const auto known = by_stream_.find(stream); known != by_stream_.end() && known->second != 0)
      return known->second;
  return loops_.size() < kStepTable.loops.max_loops ? AddLoop(loop) : 0;
}

size_t Diagnosis::ProcessLoops::AddLoop(const Loop& loop) {
  loops_.push_back(std::make_unique<Workload>(*loops_.front(), *loop.threads.begin()));
  for (const model::Incident& incident : earlier_) loops_.back()->Ingest(incident);
  for (const int32_t tid : loop.threads) loops_.front()->ForgetThread(tid);
  return loops_.size() - 1;
}

void Diagnosis::ProcessLoops::Release() {
  if (!std::exchange(holds_, false)) return;
  for (const auto& [tid, time_ns] : std::exchange(held_threads_, {})) CountThread(tid, time_ns);
  for (Held& held : std::exchange(held_, {})) {
    held.work.name = held.name;
    Route(held.work, held.times, held.on, held.tid);
  }
}

Diagnosis::Workload& Diagnosis::ProcessLoops::LoopOf(const Stream& on, std::optional<int32_t> tid) {
  if (tid.has_value()) {
    const auto loop = by_thread_.find(*tid);
    return *loops_[loop == by_thread_.end() ? 0 : loop->second];
  }
  const auto loop = by_stream_.find(on);
  return *loops_[loop == by_stream_.end() ? 0 : loop->second];
}

// Work of one loop keeps the GPU busy while another waits for it.
void Diagnosis::ProcessLoops::Route(const Work& work, std::span<const WorkTime> times, const Stream& on,
                                    std::optional<int32_t> tid) {
  Workload& loop = LoopOf(on, tid);
  loop.Ingest(work, times, on.device);
  for (const auto& other : loops_)
    if (other.get() != &loop) other->IngestOfOtherLoop(work.kind, times);
}

}  // namespace gpusonde::diagnose
