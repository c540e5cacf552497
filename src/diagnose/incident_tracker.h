// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/report.h"
#include "diagnose/situation.h"
#include "model/tables/incidents.h"
#include "model/tables/processes.h"

namespace gpusonde::diagnose {

// The incidents of one workload: begins them, explains them anew from time to time, and ends them. Times are
// ns since the epoch. Not thread-safe.
class IncidentTracker {
 public:
  // Of the loop of thread `tid`; 0: of the process's own.
  IncidentTracker(const Id128& process, int32_t tid) : process_(process), tid_(tid) {}

  // An incident that an earlier run reported; those of other loops are ignored. One that begins at about the
  // same time continues it.
  void Ingest(const model::Incident& earlier) {
    if (earlier.tid == tid_) earlier_.push_back(earlier);
  }

  // Whether an earlier run reported one that overlaps this time.
  bool WasReported(const TimeRange& when) const;

  // Begins an incident that is seen at `now_ns`.
  void Begin(int64_t onset_ns, int64_t now_ns, std::string anchor);

  // The newest incident, which was never notable, is none.
  void Discard() { reports_.pop_back(); }

  // Whether it is time to explain the newest incident anew at `time_ns`.
  bool IsUpdateDue(int64_t time_ns) const;
  // It is explained as of `time_ns`.
  void MarkUpdated(int64_t time_ns) { updated_ns_ = time_ns; }

  // Ranks the causes of the newest incident and explains it. `end_ns` is set if it has ended; `process` may
  // be null. Returns whether to report it: it has become notable, its cause differs from the one reported
  // last, or it has ended. It becomes notable when a cause is likely, a step doesn't end, steps are 1.5 times
  // slower, or it has lasted for some seconds; for a minute if steps are less than a tenth slower. `seen_ns`
  // of the incident is that time. An incident that was never notable is never reported. That no cause is
  // known is reported after a second, as a GPU is read once a second.
  bool Explain(const Situation& situation, const model::Process* process, std::optional<int64_t> end_ns,
               int64_t now_ns);

  // The last state of all incidents, by start; the newest are kept.
  const std::vector<Report>& reports() const { return reports_; }
  // The end of the newest incident; 0 if none has ended.
  int64_t last_end_ns() const;

 private:
  Report NewReport(int64_t onset_ns, int64_t now_ns) const;
  bool IsNews(const Report& report, int64_t now_ns);

  Id128 process_;
  int32_t tid_;
  int64_t onset_ns_ = 0;
  int64_t updated_ns_ = 0;
  std::string news_cause_;            // the newest incident's when last reported; empty: never reported
  int64_t unexplained_since_ns_ = 0;  // since it began, or lost its cause
  std::vector<Report> reports_;
  std::vector<model::Incident> earlier_;
};

}  // namespace gpusonde::diagnose
