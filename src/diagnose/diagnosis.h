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
#include "diagnose/cause.h"
#include "diagnose/critical_path.h"
#include "diagnose/host_timeline.h"
#include "model/batch.h"
#include "model/tables/api_calls.h"
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

// An incident as it stands, with all that its rows say and what they are made from.
struct Report {
  model::Incident incident;
  std::vector<Candidate> causes;  // ranked
  std::vector<model::Evidence> evidence;
  std::string process_name;
  int32_t pid = 0;
  std::string anchor;
};

// From what the model's rows say of programs and the machine to their steps, and to the incidents in which
// those were slow, with their causes. Knows no clock but Advance. Not thread-safe.
class Diagnosis {
 public:
  struct Options {
    // Rows may come so late at most: GPU work comes out of a process some hundred milliseconds after it was
    // done, and the agent looks once a second. Steps are looked at as soon as what is seen of the order of a
    // process's rows allows, and their accounts once more after this time.
    int64_t lateness_ns = 1500 * kNanosPerMilli;
    // Called when an incident begins, changes its cause, or ends.
    std::function<void(const Report&)> tell = [](const Report&) {};
    // Called when a signal begins to move as it does before steps slow.
    std::function<void(const model::Warning&)> warn = [](const model::Warning&) {};
  };
  explicit Diagnosis(Options options);
  Diagnosis(Diagnosis&&) noexcept;
  Diagnosis& operator=(Diagnosis&&) noexcept;
  ~Diagnosis();

  void Take(const model::ApiCall& call);
  void Take(const model::GpuSession& session);
  // What a diagnosis before this one said of a time that is told again: it is the same incident if one is
  // found that begins at about that time.
  void Take(const model::Incident& incident);
  void Take(const model::Kernel& kernel);
  void Take(const model::KernelPack& pack);
  void Take(const model::Memcpy& copy);
  void Take(const model::MetricValue& reading);
  void Take(const model::Process& process);
  void Take(const model::Range& range);
  void Take(const model::Signal& signal);
  void Take(const model::Sync& sync);

  // Nobody observed a program of GPU work in this time, in which gpusonde did not run, but from then on
  // again. To be called before Advance reaches it; other processes are passed over.
  void TakeUnobserved(const Id128& process, int64_t from_ns, int64_t to_ns);

  // Rows of those tables; others are passed over.
  void Take(const model::Batch& batch);

  // It is `now_ns` (epoch): draws the conclusions from what has settled.
  void Advance(int64_t now_ns);

  // No more rows will come. An incident that is open stays so: it lasted until the end.
  void Finish(int64_t now_ns);

  // No more rows will come, though the programs go on: what is open ends here.
  void Abandon(int64_t now_ns);

  // Rows of steps, incidents, evidence and warnings since the last call.
  std::vector<model::Batch> TakeRows();

  // Steps found so far, and what marks them ("range step"), by process; of very many processes likewise.
  struct Found {
    int64_t steps = 0;
    std::string anchor;  // empty where none was found
    std::string process_name;
    int32_t pid = 0;
    int64_t late = 0;             // rows of its GPU work that came after their time had been looked at
    bool signals_known = false;   // whether the host's signals of it were seen
    bool waits_by_habit = false;  // for requests: these waits are no part of its steps
  };
  std::map<Id128, Found> FoundSteps() const;

  // Programs whose steps are looked at now.
  size_t programs() const { return victims_.size(); }

  // All incidents so far, the last state of each, in the order of their beginning; of very many the newest of
  // each program that lives, and the newest of the others.
  std::vector<Report> Reports() const;

  // The last state of each, in the order of their beginning; of very many the newest.
  std::vector<model::Warning> Warnings() const;

  // Processes with GPU work, by id, and their pids; of those that have not ended.
  std::map<Id128, int32_t> GpuProcesses() const;

 private:
  class Victim;
  struct Shared;
  Victim& VictimOf(const Id128& process);
  Found FoundOf(const Id128& process, const Victim& victim) const;
  void Forget(int64_t before_ns);

  Options options_;
  std::unique_ptr<Shared> shared_;
  std::map<Id128, std::unique_ptr<Victim>> victims_;
  // Of programs that ended long ago.
  std::deque<std::pair<Id128, Found>> old_found_;
  std::deque<Report> old_reports_;
};

}  // namespace gpusonde::diagnose
