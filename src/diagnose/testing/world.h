// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/diagnosis.h"
#include "diagnose/testing/times.h"

// For tests: a synthetic program whose steps are ingested by a diagnosis as rows.
namespace gpusonde::diagnose {

class World {
 public:
  static constexpr int32_t kLaunchThread = 11;
  static constexpr int32_t kRankLaunchThread = 13;
  static constexpr int32_t kOtherThread = 14;  // of the workload
  const Id128 workload{1, 1}, loader{1, 2}, stranger{1, 3}, rank{1, 4}, gpusonde{1, 5}, device{2, 1};

  explicit World(Diagnosis& diagnosis) : diagnosis_(diagnosis) {
    AddProcess(workload, 11, 1, "train", "/train.slice");
    AddProcess(loader, 12, 11, "loader", "/train.slice");
    AddProcess(stranger, 99, 1, "stress", "/batch.slice");
    AddProcess(gpusonde, 98, 1, "gpusonde", "/");
    diagnosis_.Ingest(model::GpuSession{.process = workload, .session = 1, .start_ns = kBegin});
    diagnosis_.Ingest(model::ApiCall{.process = workload, .tid = kLaunchThread});
  }

  bool observed = true;  // whether there are host signals from now on

  // What the launch thread does, in this order; a step ends with a wait for the GPU's kernels.
  struct Step {
    int64_t pause_ns = 0;  // it sleeps in nanosleep()
    int64_t cpu_ns = 10 * kMs;
    int64_t behind_stranger_ns = 0;
    int64_t behind_gpusonde_ns = 0;
    int64_t behind_rank_ns = 0;
    int64_t behind_loader_ns = 0;
    bool one_cpu = false;  // the loader's work moved to the launch thread's CPU; the amount is the same
    int64_t behind_nobody_ns = 0;
    int64_t loader_runs_ns = 0;             // while the launch thread waits for it
    int64_t loader_behind_stranger_ns = 0;  // before it runs, also waited for
    int64_t loader_sleeps_ns = 0;           // while the launch thread waits for it
    int64_t loader_stopped_ns = 0;          // by a stranger, while the launch thread waits for it
    int64_t loader_hidden_ns = 0;           // it runs while nothing waits for it
    int64_t own_thread_runs_ns = 0;         // another thread of the process, also waited for
    int64_t own_thread_sleeps_ns = 0;       // the same
    int64_t own_thread_idle_ns = 0;         // also waited for, but no signal says what it does
    int64_t blocked_io_ns = 0;
    int64_t blocked_ns = 0;               // for neither a device nor memory
    int64_t stopped_ns = 0;               // by a stranger
    int64_t outside_ns = 0;               // it waits until the stranger wakes it
    int64_t network_ns = 0;               // until a packet of unknown origin arrives
    int64_t rank_runs_ns = 0;             // while the launch thread waits for its packet
    int64_t rank_behind_stranger_ns = 0;  // before it runs, also waited for
    int64_t rank_idle_ns = 0;             // it waits for an unknown process, also waited for
    int64_t rank_stopped_ns = 0;          // also waited for
    int64_t interrupted_ns = 0;           // part of cpu_ns
    int64_t reclaim_ns = 0;               // part of cpu_ns
    int64_t gpu_ns = 20 * kMs;
    int64_t copy_ns = 0;      // after the kernel, also waited for
    int64_t gpu_idle_ns = 0;  // the GPU does nothing for this program
    int64_t lost_ns = 0;      // no signal covers it
  };

  void Run(const Step& step) {
    Spend("thread.sleeping", step.pause_ns, std::nullopt);
    const int64_t start_ns = now_ns_;
    Spend("thread.running", step.cpu_ns, std::nullopt);
    if (step.interrupted_ns > 0)
      AddSignal("thread.interrupted", start_ns, step.interrupted_ns, workload, kLaunchThread, {});
    if (step.reclaim_ns > 0)
      AddSignal("thread.reclaim", start_ns + step.interrupted_ns, step.reclaim_ns, workload, kLaunchThread,
                {});
    Spend("thread.run_queue", step.behind_stranger_ns, stranger);
    if (step.behind_loader_ns > 0 && !step.one_cpu)
      AddSignal("thread.running", now_ns_, step.behind_loader_ns, loader, 12, std::nullopt);
    Spend("thread.run_queue", step.behind_loader_ns, loader);
    Spend("thread.run_queue", step.behind_gpusonde_ns, gpusonde);
    Spend("thread.run_queue", step.behind_rank_ns, rank);
    Spend("thread.run_queue", step.behind_nobody_ns, std::nullopt);
    if (step.loader_hidden_ns > 0)
      AddSignal("thread.running", start_ns, step.loader_hidden_ns, loader, 12, std::nullopt);
    if (step.loader_behind_stranger_ns > 0)
      AddSignal("thread.run_queue", now_ns_, step.loader_behind_stranger_ns, loader, 12, stranger);
    if (step.loader_runs_ns > 0)
      AddSignal("thread.running", now_ns_ + step.loader_behind_stranger_ns, step.loader_runs_ns, loader, 12,
                std::nullopt);
    Spend("thread.waiting", step.loader_behind_stranger_ns + step.loader_runs_ns, loader);
    if (step.loader_sleeps_ns > 0)
      AddSignal("thread.sleeping", now_ns_, step.loader_sleeps_ns, loader, 12, std::nullopt);
    Spend("thread.waiting", step.loader_sleeps_ns, loader);
    if (step.loader_stopped_ns > 0)
      AddSignal("thread.stopped", now_ns_, step.loader_stopped_ns, loader, 12, stranger);
    Spend("thread.waiting", step.loader_stopped_ns, loader);
    if (step.own_thread_runs_ns > 0)
      AddSignal("thread.running", now_ns_, step.own_thread_runs_ns, workload, kOtherThread, std::nullopt);
    Spend("thread.waiting", step.own_thread_runs_ns, workload);
    if (step.own_thread_sleeps_ns > 0)
      AddSignal("thread.sleeping", now_ns_, step.own_thread_sleeps_ns, workload, kOtherThread, std::nullopt);
    Spend("thread.waiting", step.own_thread_sleeps_ns + step.own_thread_idle_ns, workload);
    Spend("thread.blocked_io", step.blocked_io_ns, std::nullopt);
    Spend("thread.blocked", step.blocked_ns, std::nullopt);
    Spend("thread.stopped", step.stopped_ns, stranger);
    Spend("thread.waiting", step.outside_ns, stranger);
    Spend("thread.network", step.network_ns, std::nullopt);
    if (step.rank_behind_stranger_ns > 0)
      AddSignal("thread.run_queue", now_ns_, step.rank_behind_stranger_ns, rank, kRankLaunchThread, stranger);
    if (step.rank_runs_ns > 0)
      AddSignal("thread.running", now_ns_ + step.rank_behind_stranger_ns, step.rank_runs_ns, rank,
                kRankLaunchThread, std::nullopt);
    if (step.rank_idle_ns > 0)
      AddSignal("thread.waiting", now_ns_, step.rank_idle_ns, rank, kRankLaunchThread, std::nullopt);
    if (step.rank_stopped_ns > 0)
      AddSignal("thread.stopped", now_ns_, step.rank_stopped_ns, rank, kRankLaunchThread, stranger);
    Spend("thread.network",
          step.rank_behind_stranger_ns + step.rank_runs_ns + step.rank_idle_ns + step.rank_stopped_ns, rank);
    now_ns_ += step.lost_ns;
    const int64_t sync_ns = now_ns_;
    Spend("thread.sleeping", step.gpu_idle_ns + step.gpu_ns + step.copy_ns, std::nullopt);
    AddKernel(sync_ns + step.gpu_idle_ns, now_ns_ - step.copy_ns);
    if (step.copy_ns > 0)
      diagnosis_.Ingest(model::Memcpy{.process = workload,
                                      .device = device,
                                      .start_ns = now_ns_ - step.copy_ns,
                                      .end_ns = now_ns_,
                                      .bytes = 1 << 20,
                                      .kind = "dtoh"});
    diagnosis_.Ingest(model::Sync{
        .process = workload, .device = device, .start_ns = sync_ns, .end_ns = now_ns_, .kind = "stream"});
    if (has_rank_)
      diagnosis_.Ingest(model::Sync{
          .process = rank, .device = device, .start_ns = sync_ns, .end_ns = now_ns_, .kind = "stream"});
    diagnosis_.Advance(now_ns_);
  }

  // Adds another rank of the same job, with GPU work of its own.
  void AddRank() {
    has_rank_ = true;
    AddProcess(rank, kRankLaunchThread, 1, "train", "/train.slice");
    diagnosis_.Ingest(model::GpuSession{.process = rank, .session = 1, .start_ns = kBegin});
    diagnosis_.Ingest(model::ApiCall{.process = rank, .tid = kRankLaunchThread});
    diagnosis_.Advance(now_ns_);
  }

  void Run(const Step& step, int times) {
    for (int i = 0; i < times; ++i) {
      // Vary the CPU time by up to 2 %, pseudo-randomly.
      Step varied = step;
      random_ = random_ * 1664525 + 1013904223;
      varied.cpu_ns += (static_cast<int64_t>(random_ >> 16) % 21 - 10) * step.cpu_ns / 500;
      Run(varied);
    }
  }

  void Gauge(const std::string& metric, double value, std::optional<Id128> process = std::nullopt) {
    diagnosis_.Ingest(model::MetricValue{
        .time_ns = now_ns_, .device = device, .process = process, .metric = metric, .value = value});
  }

  // Adds the value of [from_ns, now).
  void Sum(const std::string& metric, int64_t from_ns, int64_t value, std::optional<Id128> process) {
    diagnosis_.Ingest(model::Signal{.start_ns = from_ns,
                                    .bucket_ns = now_ns_ - from_ns,
                                    .metric = metric,
                                    .process = process,
                                    .values = {value}});
  }

  // Time passes without any rows.
  void Wait(int64_t ns) {
    for (const int64_t until_ns = now_ns_ + ns; now_ns_ < until_ns; diagnosis_.Advance(now_ns_))
      now_ns_ += 100 * kMs;
  }

  // The launch thread computes, or waits for the loader that does, and launches nothing.
  void Compute(int64_t ns, bool in_loader = false) {
    for (const int64_t until_ns = now_ns_ + ns; now_ns_ < until_ns; diagnosis_.Advance(now_ns_)) {
      if (in_loader) AddSignal("thread.running", now_ns_, 100 * kMs, loader, 12, std::nullopt);
      Spend(in_loader ? "thread.waiting" : "thread.running", 100 * kMs,
            in_loader ? std::optional(loader) : std::nullopt);
    }
  }

  // From here on kernels come in packs, as from an always-on agent.
  void PackKernels() { packs_kernels_ = true; }

  int64_t now_ns() const { return now_ns_; }
  std::vector<Report> Finish() {
    diagnosis_.Finish(now_ns_);
    return diagnosis_.Reports();
  }

  void AddProcess(const Id128& id, int32_t pid, int32_t parent, const std::string& name,
                  const std::string& cgroup, std::optional<int64_t> exited_ns = std::nullopt) {
    diagnosis_.Ingest(model::Process{.process = id,
                                     .pid = pid,
                                     .parent_pid = parent,
                                     .name = name,
                                     .cgroup = cgroup,
                                     .started_ns = kBegin - kNanosPerSecond + pid,
                                     .exited_ns = exited_ns});
  }

 private:
  void AddKernel(int64_t start_ns, int64_t end_ns) {
    if (!packs_kernels_) {
      diagnosis_.Ingest(model::Kernel{.process = workload,
                                      .device = device,
                                      .start_ns = start_ns,
                                      .end_ns = end_ns,
                                      .name = "gemm",
                                      .grid_x = 64});
      return;
    }
    const int64_t second_ns = start_ns - start_ns % kNanosPerSecond;
    diagnosis_.Ingest(model::KernelPack{.process = workload,
                                        .device = device,
                                        .name = "gemm",
                                        .grid_x = 64,
                                        .start_ns = second_ns,
                                        .offsets_ns = {start_ns - second_ns},
                                        .durations_ns = {end_ns - start_ns}});
  }

  void Spend(const std::string& metric, int64_t ns, std::optional<Id128> other) {
    if (ns > 0) AddSignal(metric, now_ns_, ns, workload, kLaunchThread, other);
    now_ns_ += ns;
  }

  // Emits buckets of 10 ms, as the kernel program does.
  void AddSignal(const std::string& metric, int64_t from_ns, int64_t ns, const Id128& process, int32_t tid,
                 std::optional<Id128> other) {
    if (!observed) return;
    constexpr int64_t kBucket = 10 * kMs;
    model::Signal row{.start_ns = from_ns - from_ns % kBucket,
                      .bucket_ns = kBucket,
                      .metric = metric,
                      .process = process,
                      .tid = tid,
                      .other = other};
    for (int64_t at = row.start_ns; at < from_ns + ns; at += kBucket)
      row.values.push_back(std::min(at + kBucket, from_ns + ns) - std::max(at, from_ns));
    diagnosis_.Ingest(row);
  }

  Diagnosis& diagnosis_;
  int64_t now_ns_ = kBegin;
  uint32_t random_ = 1;
  bool packs_kernels_ = false;
  bool has_rank_ = false;
};

}  // namespace gpusonde::diagnose
