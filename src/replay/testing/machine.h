// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/diagnosis.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "replay/recall.h"
#include "store/store.h"
#include "store/table_rows.h"

// For tests: a simulated machine on which a program trains and agents run one after the other. All agents
// write to one store.
namespace gpusonde::replay {

class Machine {
 public:
  static constexpr int64_t kBegin = 1'800'000'000 * kNanosPerSecond;
  static constexpr int64_t kWakeNs = kMs;  // from a kernel's end until the call that waits for it returns
  const Id128 program{1, 1}, stranger{1, 3}, device{2, 1};

  explicit Machine(store::Store& store) : store_(store) {}

  // Starts an agent, which recalls what the store holds and begins a session of the program.
  void StartAgent() {
    diagnosis_ = std::make_unique<diagnose::Diagnosis>(diagnose::Diagnosis::Options{});
    const Status recalled =
        Recall(store_, now_ns_, [this](const model::Process&) { return program_runs_; }, *diagnosis_);
    EXPECT_TRUE(recalled.has_value()) << recalled.error().message;
    (void)diagnosis_->DrainRows();  // the agent before wrote them
    source_ = {.source = {3, ++runs_}, .boot_id = "boot", .started_ns = now_ns_};
    sources_.Append(source_);
    AddProcess(stranger, 99, "stress");
    if (program_runs_) {
      AddProcess(program, 11, "train");
      const auto session = static_cast<int32_t>(others_listen_ ? 1 : runs_);
      sessions_.Append({.process = program, .session = session, .start_ns = now_ns_});
      calls_.Append({.process = program, .tid = kLaunchThread, .start_ns = now_ns_});
    }
    Round();
  }

  // Ends it with SIGKILL: it neither finishes its diagnosis nor writes its end.
  void KillAgent() { diagnosis_.reset(); }

  void StopAgent() {
    source_.ended_ns = now_ns_;
    sources_.Append(source_);
    diagnosis_->Finish(now_ns_);
    Round();
    diagnosis_.reset();
  }

  // Trains so many steps of 30 ms, each delayed by `behind_stranger_ns` in which the stranger has the CPU.
  // The rows are lost if no agent runs.
  void Train(int steps, int64_t behind_stranger_ns = 0) {
    for (int i = 0; i < steps; ++i) {
      samples_.Append({.time_ns = now_ns_, .process = program, .tid = kLaunchThread});
      Spend("thread.running", 10 * kMs, std::nullopt);
      Spend("thread.run_queue", behind_stranger_ns, stranger);
      const int64_t sync_ns = now_ns_;
      Spend("thread.sleeping", 20 * kMs, std::nullopt);
      const int64_t second_ns = sync_ns - sync_ns % kNanosPerSecond;
      const int64_t kernel_end_ns = now_ns_ - kWakeNs;
      packs_.Append({.process = program,
                     .device = device,
                     .name = "gemm",
                     .grid_x = 64,
                     .start_ns = second_ns,
                     .end_ns = kernel_end_ns,
                     .count = 1,
                     .offsets_ns = {sync_ns - second_ns},
                     .durations_ns = {kernel_end_ns - sync_ns}});
      syncs_.Append(
          {.process = program, .device = device, .start_ns = sync_ns, .end_ns = now_ns_, .kind = "stream"});
      if (now_ns_ - round_ns_ >= 250 * kMs) Round();
    }
    Round();
  }

  void EndProgram() { program_runs_ = false; }

  // Agents of others keep the program's first session going; those of this machine join it.
  void LetOthersListen() { others_listen_ = true; }

  // Time passes without any rows.
  void Wait(int64_t duration_ns) {
    for (const int64_t until_ns = now_ns_ + duration_ns; now_ns_ < until_ns; Round())
      now_ns_ = std::min(until_ns, now_ns_ + (diagnosis_ == nullptr ? duration_ns : kNanosPerSecond));
  }

  int64_t now_ns() const { return now_ns_; }

  std::vector<model::Incident> Incidents() {
    return store::ReadTable(store_, model::kIncidents, "ORDER BY start_ns").value();
  }

 private:
  static constexpr int32_t kLaunchThread = 11;

  // What an agent does in a round: its rows and those of the diagnosis go to the store.
  void Round() {
    round_ns_ = now_ns_;
    std::vector<model::Batch> batches;
    const auto drain = [&](auto& rows) {
      if (rows.rows() > 0) batches.push_back(rows.Take());
    };
    drain(sources_), drain(processes_), drain(samples_), drain(sessions_), drain(calls_), drain(packs_),
        drain(syncs_), drain(signals_);
    if (diagnosis_ == nullptr) return;
    for (const model::Batch& batch : batches) diagnosis_->Ingest(batch);
    diagnosis_->Advance(now_ns_);
    std::ranges::move(diagnosis_->DrainRows(), std::back_inserter(batches));
    const Status stored = store_.Append(batches);
    EXPECT_TRUE(stored.has_value()) << stored.error().message;
  }

  void AddProcess(const Id128& id, int32_t pid, const std::string& name) {
    processes_.Append({.process = id,
                       .source = source_.source,
                       .pid = pid,
                       .parent_pid = 1,
                       .name = name,
                       .cgroup = "/" + name,
                       .started_ns = kBegin - kNanosPerSecond + pid});
  }

  // The launch thread is in a state for so long, reported in buckets of 10 ms.
  void Spend(const std::string& metric, int64_t ns, std::optional<Id128> other) {
    if (ns == 0) return;
    constexpr int64_t kBucketNs = 10 * kMs;
    model::Signal row{.start_ns = now_ns_ - now_ns_ % kBucketNs,
                      .bucket_ns = kBucketNs,
                      .source = source_.source,
                      .metric = metric,
                      .process = program,
                      .tid = kLaunchThread,
                      .other = other};
    for (int64_t at = row.start_ns; at < now_ns_ + ns; at += kBucketNs)
      row.values.push_back(std::min(at + kBucketNs, now_ns_ + ns) - std::max(at, now_ns_));
    signals_.Append(row);
    now_ns_ += ns;
  }

  store::Store& store_;
  std::unique_ptr<diagnose::Diagnosis> diagnosis_;  // the running agent's
  model::Source source_;                            // likewise
  uint64_t runs_ = 0;
  bool program_runs_ = true;
  bool others_listen_ = false;
  int64_t now_ns_ = kBegin;
  int64_t round_ns_ = kBegin;
  model::BatchBuilder<decltype(model::kSources)> sources_{model::kSources};
  model::BatchBuilder<decltype(model::kProcesses)> processes_{model::kProcesses};
  model::BatchBuilder<decltype(model::kSamples)> samples_{model::kSamples};
  model::BatchBuilder<decltype(model::kGpuSessions)> sessions_{model::kGpuSessions};
  model::BatchBuilder<decltype(model::kApiCalls)> calls_{model::kApiCalls};
  model::BatchBuilder<decltype(model::kKernelPacks)> packs_{model::kKernelPacks};
  model::BatchBuilder<decltype(model::kSyncs)> syncs_{model::kSyncs};
  model::BatchBuilder<decltype(model::kSignals)> signals_{model::kSignals};
};

}  // namespace gpusonde::replay
