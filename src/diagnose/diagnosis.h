// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "base/time.h"
#include "diagnose/report.h"
#include "diagnose/situation.h"
#include "diagnose/usual_step.h"
#include "model/batch.h"
#include "model/step_kind.h"
#include "model/tables/api_calls.h"
#include "model/tables/collectives.h"
#include "model/tables/communicators.h"
#include "model/tables/containers.h"
#include "model/tables/evidence.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/incidents.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/memcpys.h"
#include "model/tables/metrics.h"
#include "model/tables/processes.h"
#include "model/tables/ranges.h"
#include "model/tables/signals.h"
#include "model/tables/steps.h"
#include "model/tables/syncs.h"
#include "model/tables/warnings.h"

namespace gpusonde::diagnose {

// Turns rows of the model (GPU work, host signals, processes) into the steps of each program, the incidents
// in which those were slow, and their causes. Time advances only by Advance. Not thread-safe.
class Diagnosis {
 public:
  // For how long host signals and ended processes are kept, so also how far back incidents compare. Bounds
  // memory.
  static constexpr int64_t kRetentionNs = 180 * kNanosPerSecond;

  struct Options {
    // How late rows may arrive. GPU work leaves a process some hundred milliseconds after it was done, and
    // the agent polls once a second. Steps are evaluated as soon as the watermark of their process passes
    // them, and accounted for again after this time, when all host signals have arrived.
    int64_t allowed_lateness_ns = 1500 * kNanosPerMilli;
    // Whether host signals are observed from a program's first seconds on, so that steps from before them are
    // no evidence. False for traces of other profilers, and without privileges.
    bool awaits_signals = true;
    // Called when an incident begins, its cause changes, or it ends.
    std::function<void(const Report&)> report = [](const Report&) {};
    // Called each time that an incident is explained, with what it was explained from: `situation` can be
    // stored and replayed (situation_json.h).
    std::function<void(const Situation&, const Report&)> explained = [](const Situation&, const Report&) {};
    // Called when an indicator begins to warn of slow steps (indicator.h).
    std::function<void(const model::Warning&)> warn = [](const model::Warning&) {};
  };
  explicit Diagnosis(Options options);
  Diagnosis(Diagnosis&&) noexcept;
  Diagnosis& operator=(Diagnosis&&) noexcept;
  ~Diagnosis();

  void Ingest(const model::ApiCall& call);
  void Ingest(const model::Collective& collective);
  void Ingest(const model::Communicator& communicator);
  void Ingest(const model::Container& container);
  void Ingest(const model::GpuSession& session);
  // An incident that an earlier run reported for a time that is now replayed. An incident found with about
  // the same onset continues it under the same id.
  void Ingest(const model::Incident& incident);
  void Ingest(const model::Kernel& kernel);
  void Ingest(const model::KernelPack& pack);
  void Ingest(const model::Memcpy& copy);
  void Ingest(const model::MetricValue& reading);
  void Ingest(const model::Process& process);
  void Ingest(const model::Range& range);
  void Ingest(const model::Signal& signal);
  void Ingest(const model::Sync& sync);

  // Marks a time in which gpusonde did not run, so that GPU work of this process is missing. Call it before
  // Advance reaches that time. Ignored for processes without GPU work.
  void MarkUnobserved(const Id128& process, int64_t from_ns, int64_t to_ns);

  // Ingests the batch's rows if they are of one of these tables; ignores others.
  void Ingest(const model::Batch& batch);

  // Advances to `now_ns` (epoch): finds steps, and begins, updates and ends incidents.
  void Advance(int64_t now_ns);

  // The end of the input. An open incident stays open: it lasted until the end.
  void Finish(int64_t now_ns);

  // The end of the input while the programs go on: open incidents end at `now_ns`, warnings when their signs
  // were last seen.
  void Abandon(int64_t now_ns);

  // Returns the rows of steps, incidents, evidence and warnings since the last call.
  std::vector<model::Batch> DrainRows();

  // The steps found so far of a loop of a process, and their anchor ("range step").
  struct Found {
    Id128 process;
    int32_t tid = 0;  // the loop's thread; 0: the process's only loop, or the first of several
    int64_t steps = 0;
    std::string anchor;  // empty if none was found
    std::string process_name;
    int32_t pid = 0;
    int64_t late = 0;            // rows of its GPU work that arrived after the watermark
    bool signals_known = false;  // whether any host signals of it were received
    // Whether it waits for requests between steps; these waits are not part of its steps.
    bool waits_by_habit = false;
    UsualStep usual;
    std::vector<model::StepKind> kinds;  // the common ones
  };
  // By process and thread. Ended processes are kept up to a limit.
  std::vector<Found> FoundSteps() const;

  // The number of programs that are tracked now.
  size_t programs() const { return processes_.size(); }

  // The last state of all incidents, by start time. The number kept is limited, per live program and for all
  // ended programs together.
  std::vector<Report> Reports() const;

  // The last state of all warnings, by start time; the newest are kept.
  std::vector<model::Warning> Warnings() const;

  // The ids and pids of processes with GPU work, or with NCCL communicators, that haven't exited.
  std::map<Id128, int32_t> GpuProcesses() const;

 private:
  class Workload;
  class ProcessLoops;
  struct Shared;
  ProcessLoops& LoopsOf(const Id128& process);
  Found FoundOf(const Id128& process, const Workload& loop) const;
  void Forget(int64_t before_ns);
  void EmitCollective(const Report& report);

  Options options_;
  std::unique_ptr<Shared> shared_;
  std::map<Id128, std::unique_ptr<ProcessLoops>> processes_;
  // Of programs that ended longer ago than the retention of host signals.
  std::deque<Found> old_found_;
  std::deque<Report> old_reports_;
};

}  // namespace gpusonde::diagnose
