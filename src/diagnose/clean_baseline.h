// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/accounted_step.h"

namespace gpusonde::diagnose {

// What steps of a program normally do: the complete accounts of the newest clean steps of each type, and the
// calm period in which host signals had their normal values. Times are ns since the epoch. Not thread-safe.
class CleanBaseline {
 public:
  void Add(const AccountedStep& clean);

  // Call when an incident begins: its steps aren't clean after all. `previous_end_ns` is the end of the
  // previous incident; 0 if there was none.
  void DropAfter(int64_t onset_ns);
  void SetCalm(int64_t onset_ns, int64_t previous_end_ns);
  // Host signals had their normal values in this period, after an incident with no calm known before it.
  void SetCalm(const TimeRange& calm) { calm_ = calm; }

  // Steps have become shorter since a time; `disturbed` if that is because something outside that delayed the
  // program (account.h) has ended.
  struct Shortened {
    int64_t since_ns;
    bool disturbed;
  };
  std::optional<Shortened> FindShortened() const;
  // The sum over the steps that started before this time, of types that also have later steps.
  StepSum SumBefore(int64_t time_ns) const;
  // Forgets what was before: it wasn't clean after all.
  void ForgetBefore(int64_t time_ns);

  // Forgets the steps, as their lengths aren't comparable with later ones.
  void Clear();

  bool empty() const { return accounts_.empty(); }
  // The start of the newest ten seconds of steps, or of 32 if these are fewer; INT64_MAX without steps. Steps
  // of a type that no longer occurs may be older.
  int64_t RecentSince() const;

  // Adds to `sum` what `count` steps of this type normally do; of another type if this one is unknown.
  void AddUsual(const Id128& type, int64_t count, PathAccount& sum) const;

  // The period before the newest incident, or before the ones that shortly preceded it: at most
  // kIncidentTable.calm.max_ns.
  TimeRange calm() const;

  // Calls visit(AccountedStep&) for each step.
  template <class Visit>
  void ForEach(Visit visit) {
    for (auto& [type, accounts] : accounts_)
      for (AccountedStep& accounted : accounts) visit(accounted);
  }
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const auto& [type, accounts] : accounts_)
      for (const AccountedStep& accounted : accounts) visit(accounted);
  }

 private:
  // The start of as many of the newest steps as an ended disturbance is judged by.
  int64_t StartOfNewest() const;

  std::map<Id128, std::deque<AccountedStep>> accounts_;  // by step type
  int64_t since_ns_ = 0;                                 // start of the first clean step; 0: none yet
  TimeRange calm_;
};

}  // namespace gpusonde::diagnose
