// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "diagnose/diagnosis.h"
#include "diagnose/loop_finder.h"
#include "diagnose/watermark.h"
#include "diagnose/work.h"
#include "diagnose/workload.h"
#include "model/tables/api_calls.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/incidents.h"

namespace gpusonde::diagnose {

// Where a row of GPU work comes from. What it refers to is read only during Ingest.
struct Origin {
  Stream on = {.device = {}, .context = 0, .stream = -1};
  int32_t session = 0;
  std::span<const int64_t> correlations;  // of each piece
  std::optional<int32_t> tid;             // of a range
};

// The loops of one process (loop_finder.h), a workload each: routes its rows to them. The first loop is the
// process's own: all its work is that one's, unless several are found. In the first second no steps can be
// found, so its work is held back so long, and for some more if there may be several loops; work of a loop
// that begins later belongs to the first one until it is found. Not thread-safe.
class Diagnosis::ProcessLoops {
 public:
  ProcessLoops(const Id128& process, Shared& shared, const Options& options);

  // Ingests pieces of work that are alike but for their times. The times in `work` are not read.
  void Ingest(const Work& work, std::span<const WorkTime> times, const Origin& from);
  void Ingest(const model::ApiCall& call);
  void Ingest(const model::GpuSession& session);
  void Ingest(const model::Incident& incident);
  // A call or a range of this thread.
  void CountThread(int32_t tid, int64_t time_ns);
  void MarkUnobserved(int64_t from_ns, int64_t to_ns);

  void Advance(int64_t now_ns, int64_t allowed_lateness_ns);
  void Finish(int64_t time_ns);
  void Abandon(int64_t time_ns);

  // When the process ended, once all steps until then were evaluated; nullopt while it lives.
  std::optional<int64_t> ended_ns() const { return loops_.front()->ended_ns(); }
  // The process's own loop, then the others.
  const std::vector<std::unique_ptr<Workload>>& loops() const { return loops_; }

 private:
  // Work that waits until it is known whose it is.
  struct Held {
    Work work;
    std::string name;
    std::vector<WorkTime> times;
    Stream on;
    std::optional<int32_t> tid;
  };
  // What is looked at to find loops.
  struct Search {
    LoopFinder finder;
    int64_t oldest_ns = INT64_MAX, newest_ns = 0;  // ends of its work
    int64_t begun_ns = 0;                          // when its first rows had come; 0: none has
    int64_t next_ns = 0;                           // when to look again
    bool any = false;                              // whether rows have come
  };

  void Route(const Work& work, std::span<const WorkTime> times, const Stream& on, std::optional<int32_t> tid);
  Workload& LoopOf(const Stream& on, std::optional<int32_t> tid);
  void BeginSearchIfNew(const Work& work, const Stream& on);
  void Look(int64_t now_ns, int64_t allowed_lateness_ns);
  void EndSearch();
  void Conclude(const std::vector<Loop>& found);
  void Split(const std::vector<Loop>& found);
  size_t IndexOf(const Loop& loop);
  size_t AddLoop(const Loop& loop);
  void Release();

  Watermark watermark_;
  std::vector<std::unique_ptr<Workload>> loops_;
  std::map<Stream, size_t> by_stream_;  // indices of loops; all others are the first one's
  std::map<int32_t, size_t> by_thread_;
  std::set<Stream> awaited_;  // streams that were waited for
  std::vector<model::Incident> earlier_;
  std::optional<Search> search_;
  bool holds_ = true;
  std::vector<Held> held_;
  size_t held_pieces_ = 0;
  std::vector<std::pair<int32_t, int64_t>> held_threads_;
};

}  // namespace gpusonde::diagnose
