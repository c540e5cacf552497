// SPDX-License-Identifier: Apache-2.0
#include "analyze/read_trace.h"

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "analyze/start_thread.h"

namespace gpusonde::analyze {
namespace {

// Hands out shards and keeps the error of the earliest one that failed.
class Work {
 public:
  Work(importers::Trace& trace, Share share) : trace_(trace), share_(share) {}

  bool Next(importers::Shard& shard) {
    const std::scoped_lock lock(mutex_);
    while (!stopped_) {
      auto more = trace_.Next(shard);
      if (!more.has_value()) return Stop(std::numeric_limits<uint64_t>::max(), std::move(more).error());
      if (!*more) return false;
      if (shard.index % share_.parts == share_.part) return true;
    }
    return false;
  }
  void Fail(uint64_t shard, Error error) {
    const std::scoped_lock lock(mutex_);
    Stop(shard, std::move(error));
  }
  Status status() && {
    if (!stopped_) return {};
    return std::unexpected(std::move(error_));
  }

 private:
  bool Stop(uint64_t shard, Error error) {
    if (!stopped_ || shard < failed_shard_) {
      failed_shard_ = shard;
      error_ = std::move(error);
    }
    stopped_ = true;
    return false;
  }

  std::mutex mutex_;
  importers::Trace& trace_;
  Share share_;
  bool stopped_ = false;
  uint64_t failed_shard_ = 0;
  Error error_;
};

void ReadShards(const importers::Trace& trace, bool partial, Work& work, TraceState& state) {
  auto reader = trace.MakeReader(state);
  if (!reader.has_value()) return work.Fail(0, std::move(reader).error());
  importers::Shard shard;
  while (work.Next(shard)) {
    Status done = (*reader)->Read(shard);
    if (done.has_value()) continue;
    if (!partial) return work.Fail(shard.index, std::move(done).error());
    state.SkipShard();
  }
  state.SortRecords();
}

}  // namespace

Result<TraceState> ReadTrace(importers::Trace& trace, const ReadOptions& options) {
  Work work(trace, options.share);
  std::vector<std::unique_ptr<TraceState>> states;
  for (int i = 0; i < options.threads; ++i)
    states.push_back(std::make_unique<TraceState>(options.keep_records));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < states.size(); ++i)
      if (!StartThread(threads, [&, i] { ReadShards(trace, options.partial, work, *states[i]); })) break;
    ReadShards(trace, options.partial, work, *states[0]);
  }
  TRY(std::move(work).status());
  for (size_t i = 1; i < states.size(); ++i) states[0]->Merge(std::move(*states[i]));
  Status finished = states[0]->Finish();
  if (!finished.has_value()) return Fail(std::move(finished).error().With(options.path));
  if (trace.info().separate_gpu_clock) states[0]->SeparateGpuClock();
  return std::move(*states[0]);
}

}  // namespace gpusonde::analyze
