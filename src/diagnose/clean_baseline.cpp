// SPDX-License-Identifier: Apache-2.0
#include "diagnose/clean_baseline.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ranges>
#include <utility>
#include <vector>

#include "base/time.h"
#include "diagnose/incident_table.h"

namespace gpusonde::diagnose {
namespace {

// The start of the first step after those that were longer than `ratio` times what is usual now (with each),
// on the whole.
int64_t ChangeOf(std::vector<std::pair<const AccountedStep*, double>> steps, double ratio) {
  std::ranges::sort(steps, {}, [](const auto& each) { return each.first->step.start_ns; });
  double excess_ns = 0, most_ns = 0;
  int64_t change_ns = steps.front().first->step.start_ns;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    excess_ns += steps[i].first->path.states.total() - ratio * steps[i].second;
    if (excess_ns <= most_ns) continue;
    most_ns = excess_ns;
    change_ns = steps[i + 1].first->step.start_ns;
  }
  return change_ns;
}

}  // namespace

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

std::optional<CleanBaseline::Shortened> CleanBaseline::FindShortened() const {
  const auto& table = kIncidentTable.disturbed;
  const int64_t since_ns = StartOfNewest();
  Account before, since;
  double steps_before = 0, steps_since = 0;
  std::vector<std::pair<const AccountedStep*, double>>
      compared;  // with the mean of the newest of its type, ns
  for (const auto& [type, accounts] : accounts_) {
    const auto first = std::ranges::partition_point(
        accounts, [&](const AccountedStep& each) { return each.step.start_ns < since_ns; });
    const auto old = static_cast<double>(first - accounts.begin());
    const auto now = static_cast<double>(accounts.end() - first);
    if (old == 0 || now == 0 || !accounts.front().observed) continue;
    Account of_type, newest;
    for (const AccountedStep& each : std::ranges::subrange(accounts.begin(), first))
      of_type += each.path.states;
    of_type *= now / old;
    before += of_type;
    for (const AccountedStep& each : std::ranges::subrange(first, accounts.end())) newest += each.path.states;
    since += newest;
    for (const AccountedStep& each : accounts) compared.emplace_back(&each, newest.total() / now);
    steps_before += old;
    steps_since += now;
  }
  if (steps_before < table.min_before || steps_since < table.min_steps ||
      before.total() < table.ratio * since.total())
    return std::nullopt;
  const int64_t change_ns = ChangeOf(std::move(compared), (1 + before.total() / since.total()) / 2);
  if (change_ns > since_ns) return std::nullopt;  // some of the newest were as long as before
  const double lost_ns = before.total() - since.total();
  const bool disturbed = before.disturbed() - since.disturbed() >= table.share * lost_ns &&
                         since.disturbed() <= table.left * before.disturbed();
  return Shortened{.since_ns = change_ns, .disturbed = disturbed};
}

int64_t CleanBaseline::StartOfNewest() const {
  int64_t newest_ns = 0;
  double total_ns = 0, steps = 0;
  for (const auto& [type, accounts] : accounts_) {
    newest_ns = std::max(newest_ns, accounts.back().step.end_ns);
    for (const AccountedStep& each : accounts) total_ns += each.path.states.total();
    steps += static_cast<double>(accounts.size());
  }
  constexpr double kMaxNs = 1e18;  // of recordings that claim centuries
  const double steps_ns =
      std::min(kIncidentTable.disturbed.min_steps * total_ns / std::max(steps, 1.0), kMaxNs);
  return newest_ns - std::max(kIncidentTable.disturbed.since_ns.value, static_cast<int64_t>(steps_ns));
}

StepSum CleanBaseline::SumBefore(int64_t time_ns) const {
  StepSum sum;
  for (const auto& [type, accounts] : accounts_) {
    if (accounts.back().step.start_ns < time_ns) continue;
    for (const AccountedStep& each : accounts)
      if (each.step.start_ns < time_ns) sum.Add(each);
  }
  return sum;
}

int64_t CleanBaseline::RecentSince() const {
  std::vector<int64_t> starts;
  int64_t newest_ns = 0;
  ForEach([&](const AccountedStep& clean) {
    starts.push_back(clean.step.start_ns);
    newest_ns = std::max(newest_ns, clean.step.end_ns);
  });
  if (starts.empty()) return INT64_MAX;
  std::ranges::sort(starts, std::greater());
  const auto recent = std::ranges::partition_point(
      starts, [&](int64_t start_ns) { return start_ns >= newest_ns - kIncidentTable.clean.kept_ns; });
  const size_t kept = std::min<size_t>(kIncidentTable.clean.min_of_type, starts.size());
  return starts[std::max(static_cast<size_t>(recent - starts.begin()), kept) - 1];
}

void CleanBaseline::ForgetBefore(int64_t time_ns) {
  for (auto& [type, accounts] : accounts_)
    std::erase_if(accounts, [&](const AccountedStep& each) { return each.step.start_ns < time_ns; });
  std::erase_if(accounts_, [](const auto& of_type) { return of_type.second.empty(); });
  since_ns_ = std::max(since_ns_, time_ns);
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
