// SPDX-License-Identifier: Apache-2.0
#include "serve/host_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/time.h"

namespace gpusonde::serve {
namespace {

// Of the sums of all hosts together: at 200 hosts 640 kB each, enough for 30 processes at a time over a week.
constexpr size_t kMaxSumBytes = size_t{128} << 20;
constexpr size_t kMinHosts = 16;
// So many times as old as they should be, sums are given without waiting: hundreds of hosts take longer.
constexpr int64_t kGoodAges = 4;
// How old sums may become while no client asks.
constexpr int64_t kUnwantedAgeNs = 600 * kNanosPerSecond;
// While no client asks, hosts are read for one of so many parts of the time.
constexpr int64_t kUnwantedParts = 8;
// For how long after a question clients count as asking: an open page asks every minute.
constexpr int64_t kAskedNs = 180 * kNanosPerSecond;
// How long after the start hosts are first read without a question: agents send their backlog after a
// restart.
constexpr int64_t kWarmUpNs = 10 * kNanosPerSecond;

// The hours that the range touches, as far as they are over.
TimeRange WholeHours(const TimeRange& range, int64_t now_ns) {
  TimeRange hours{std::max<int64_t>(range.from_ns, 0), std::clamp<int64_t>(range.to_ns, 0, now_ns)};
  hours.from_ns -= hours.from_ns % store::kUsageHourNs;
  const int64_t last_ns = hours.to_ns + store::kUsageHourNs - 1;
  hours.to_ns = std::min(last_ns - last_ns % store::kUsageHourNs, now_ns);
  return hours;
}

}  // namespace

HostUsage::HostUsage(Hosts& hosts, const Options& options)
    : hosts_(hosts),
      options_(options),
      reader_(hosts, {.read = [this](Host& host, Known known) { return Read(host, std::move(known)); },
                      .is_fresh =
                          [age_ns = options.age_ns](const Host& host, const Known& known, bool wanted) {
                            return IsRead(host, known, wanted ? age_ns : kUnwantedAgeNs);
                          },
                      .wanted_ns = kAskedNs,
                      .unwanted_parts = kUnwantedParts,
                      .warm_up_ns = kWarmUpNs}) {}

usage::Usage HostUsage::Sum(const TimeRange& range, const usage::SumBy& by) {
  const int64_t now_ns = EpochNow();
  const TimeRange hours = WholeHours(range, now_ns);
  const std::vector<std::shared_ptr<Host>> all = hosts_.All();
  const std::vector<Known> found = Ask(all, options_.timeout);
  std::vector<usage::Usage> sums;
  usage::Coverage coverage{.hosts = std::ssize(all)};
  for (size_t i = 0; i < all.size(); ++i) {
    const Known& known = found[i];
    const auto add_gap = [&](std::string why) { coverage.gaps.push_back({all[i]->name(), std::move(why)}); };
    if (known.hours == nullptr) {
      add_gap(known.error.empty() ? "not read yet" : known.error);
      continue;
    }
    const TimeRange& covered = known.hours->covered();
    if (!known.error.empty())
      add_gap(fmt::format("not read since {} UTC: {}", FormatUtcMinute(covered.to_ns), known.error));
    else if (known.hours->is_cut() && hours.from_ns < covered.from_ns)
      add_gap(fmt::format("summed only from {} UTC on: query this host alone for all of it",
                          FormatUtcMinute(covered.from_ns)));
    if (!all[i]->IsSilent(MonotonicNow()) && covered.from_ns < covered.to_ns)
      coverage.until_ns = std::min(coverage.until_ns.value_or(covered.to_ns), covered.to_ns);
    sums.push_back(known.hours->Sum(hours, by));
  }
  usage::Usage usage = usage::Merge(std::move(sums));
  usage.range = hours;
  usage.by = by;
  usage.coverage = std::move(coverage);
  return usage;
}

std::map<std::string, HostUsage::Total> HostUsage::Totals(const TimeRange& range) {
  const std::vector<std::shared_ptr<Host>> all = hosts_.All();
  const std::vector<Known> found = Ask(all, std::chrono::milliseconds(0));
  const TimeRange hours = WholeHours(range, EpochNow());
  std::map<std::string, Total> totals;
  for (size_t i = 0; i < all.size(); ++i) {
    if (found[i].hours == nullptr) continue;
    const model::HolderUse use = found[i].hours->Sum(hours, {.by = usage::By::kHost}).Total().use;
    totals[all[i]->name()] = {usage::AccountableNs(use), use.idle_ns};
  }
  return totals;
}

// What is known of the hosts, after waiting for those that were not read lately.
std::vector<HostUsage::Known> HostUsage::Ask(const std::vector<std::shared_ptr<Host>>& all,
                                             std::chrono::milliseconds timeout) {
  return reader_.Ask(all, timeout, [this](const Host& host, const Known& known, bool) {
    return IsRead(host, known, kGoodAges * options_.age_ns);
  });
}

// Whether all that the host has sent is summed, or it was read lately.
bool HostUsage::IsRead(const Host& host, const Known& known, int64_t age_ns) {
  if (known.read_ns == 0) return false;
  return (known.error.empty() && known.last_seen_ns == host.last_seen_ns()) ||
         MonotonicNow() - known.read_ns < age_ns;
}

size_t HostUsage::MaxBytes() const { return kMaxSumBytes / std::max(hosts_.All().size(), kMinHosts); }

HostUsage::Known HostUsage::Read(Host& host, Known known) const {
  known.error.clear();
  // First what says how new the data is: what comes meanwhile is read the next time.
  known.last_seen_ns = host.last_seen_ns();
  const int64_t changed_from_ns = host.TakeUsageChange();
  const auto update = [&]() -> Status {
    ASSIGN_OR_RETURN(store::LiveStore* const store, host.Store());
    const std::vector<store::Day> days = store->days();
    const std::optional<store::Day> first_day = days.empty() ? std::nullopt : std::optional(days.front());
    auto hours = known.hours == nullptr ? std::make_shared<usage::UsageHours>(MaxBytes())
                                        : std::make_shared<usage::UsageHours>(*known.hours);
    hours->SetMaxBytes(MaxBytes());  // there may be more hosts than the last time
    // A deleted day may have been the only one that saw a process.
    TRY(hours->Update(*store, first_day == known.first_day ? changed_from_ns : usage::kAllOfIt));
    known.hours = std::move(hours);
    known.first_day = first_day;
    return {};
  };
  if (const Status updated = update(); !updated.has_value()) {
    host.AddUsageChange(changed_from_ns);
    known.error = updated.error().message;
    LogWarn("can't sum up the GPU time of {}: {}", host.name(), known.error);
  }
  return known;
}

}  // namespace gpusonde::serve
