// SPDX-License-Identifier: Apache-2.0
#include "diagnose/clean_baseline.h"

#include <algorithm>
#include <cstddef>
#include <ranges>

#include "base/time.h"
#include "diagnose/incident_table.h"

namespace gpusonde::diagnose {

void CleanBaseline::Add(const AccountedStep& clean) {
  std::deque<AccountedStep>& of_type = accounts_[clean.step.type];
  of_type.push_back(clean);
  while (of_type.size() > kIncidentTable.clean.max_of_type ||
         (of_type.size() > kIncidentTable.clean.min_of_type &&
          of_type.front().step.end_ns < clean.step.end_ns - kIncidentTable.clean.kept_ns))
    of_type.pop_front();
  // The time of steps from before the host's signals were observed is unexplained; all states of later ones
  // would seem to have grown.
  const auto newest =
      of_type | std::views::reverse | std::views::take(kIncidentTable.clean.min_observed.value);
  if (!of_type.front().observed && of_type.size() > kIncidentTable.clean.min_observed &&
      std::ranges::all_of(newest, &AccountedStep::observed))
    std::erase_if(of_type, [](const AccountedStep& each) { return !each.observed; });
  if (since_ns_ == 0) since_ns_ = clean.step.start_ns;
}

void CleanBaseline::DropAfter(int64_t onset_ns) {
  for (auto& [type, accounts] : accounts_)
    std::erase_if(accounts, [&](const AccountedStep& each) { return each.step.end_ns > onset_ns; });
  std::erase_if(accounts_, [](const auto& of_type) { return of_type.second.empty(); });
}

void CleanBaseline::SetCalm(int64_t onset_ns, int64_t previous_end_ns) {
  const int64_t since_ns = std::max(since_ns_, previous_end_ns);
  if (calm_.to_ns == 0 || onset_ns - since_ns >= kIncidentTable.calm.min_ns) calm_ = {since_ns, onset_ns};
}

void CleanBaseline::Clear() {
  accounts_.clear();
  since_ns_ = 0;
}

void CleanBaseline::AddUsual(const Id128& type, int64_t count, PathAccount& sum) const {
  auto clean = accounts_.find(type);
  if (clean == accounts_.end()) clean = accounts_.begin();
  if (clean == accounts_.end()) return;
  const double share = static_cast<double>(count) / static_cast<double>(clean->second.size());
  for (const AccountedStep& accounted : clean->second) sum.Add(accounted.path, share);
}

TimeRange CleanBaseline::calm() const {
  return {std::max(calm_.from_ns, calm_.to_ns - kIncidentTable.calm.max_ns), calm_.to_ns};
}

}  // namespace gpusonde::diagnose
