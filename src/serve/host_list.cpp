// SPDX-License-Identifier: Apache-2.0
#include "serve/host_list.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/saturated.h"
#include "base/time.h"
#include "store/queries/gpu_query.h"
#include "store/queries/newest_incidents.h"

namespace gpusonde::serve {
namespace {

constexpr int64_t kBusyNs = 900 * kNanosPerSecond;
constexpr int64_t kIncidentsNs = kNanosPerDay;
constexpr int64_t kMaxNewest = 20;
// When a summary is read again: the list is read every 10 s while a page is open. Of a silent host little
// changes.
constexpr int64_t kFreshNs = 10 * kNanosPerSecond;
constexpr int64_t kSilentFreshNs = 600 * kNanosPerSecond;
// How old one may be that is shown without waiting.
constexpr int64_t kGoodNs = 20 * kNanosPerSecond;
// How long summaries are kept fresh after the list was read.
constexpr int64_t kWantedNs = 30 * kNanosPerSecond;
// How long the first reader waits for summaries.
constexpr std::chrono::seconds kTimeout(5);

// `gone_ns` is when a silent host was last seen: whether it has been idle since, or an incident still lasts,
// nobody knows.
Result<HostSummary> Summarise(store::Store& store, int64_t now_ns, std::optional<int64_t> gone_ns) {
  HostSummary summary;
  ASSIGN_OR_RETURN(const auto devices,
                   store::ReadDeviceUse(store, {.from_ns = now_ns - kBusyNs, .to_ns = now_ns, .filter = {}}));
  int64_t busy_ns = 0, observed_ns = 0;
  for (const store::DeviceUse& device : devices) {
    busy_ns += device.busy_ns;
    observed_ns += device.observed_ns;
  }
  summary.gpus = std::ranges::count_if(
      devices, [](const store::DeviceUse& use) { return !use.device.parent.has_value(); });
  if (observed_ns > 0 && !gone_ns.has_value())
    summary.busy = static_cast<double>(busy_ns) / static_cast<double>(observed_ns);
  ASSIGN_OR_RETURN(
      store::NewestIncidents newest,
      store::ReadNewestIncidents(store, {now_ns - kIncidentsNs, gone_ns.value_or(now_ns)}, kMaxNewest));
  summary.incidents = newest.count;
  summary.newest = std::move(newest.lines);
  return summary;
}

Result<HostSummary> SummariseHost(Host& host) {
  ASSIGN_OR_RETURN(store::LiveStore* const store, host.Store());
  // By the host's clock, where that is ahead: its last minutes are in the future of this one.
  const int64_t ahead_ns = std::max<int64_t>(-host.spool_age_ns().value_or(0), 0);
  const int64_t now_ns = AddSaturated(EpochNow(), ahead_ns);
  std::optional<int64_t> gone_ns;
  if (host.IsSilent(MonotonicNow())) gone_ns = std::min(AddSaturated(host.last_seen_ns(), ahead_ns), now_ns);
  return Summarise(*store, now_ns, gone_ns);
}

}  // namespace

HostList::HostList(Hosts& hosts)
    : hosts_(hosts),
      reader_(hosts, {.read =
                          [](Host& host, const Known&) {
                            return Known{std::make_shared<const Result<HostSummary>>(SummariseHost(host))};
                          },
                      .is_fresh = [](const Host& host, const Known& known,
                                     bool) { return IsYounger(host, known, kFreshNs); },
                      .wanted_ns = kWantedNs}) {}

std::vector<HostList::Line> HostList::Read() {
  const std::vector<std::shared_ptr<Host>> all = hosts_.All();
  // Summaries of a list that is read again and again are as fresh as the thread can have them.
  const std::vector<Known> known =
      reader_.Ask(all, kTimeout, [](const Host& host, const Known& summarised, bool wanted) {
        return IsYounger(host, summarised, wanted ? std::numeric_limits<int64_t>::max() : kGoodNs);
      });
  std::vector<Line> lines;
  for (size_t i = 0; i < all.size(); ++i) lines.push_back({all[i], known[i].summary});
  return lines;
}

bool HostList::IsYounger(const Host& host, const Known& known, int64_t age_ns) {
  if (known.summary == nullptr) return false;
  const int64_t now_ns = MonotonicNow();
  return now_ns - known.read_ns < (host.IsSilent(now_ns) ? kSilentFreshNs : age_ns);
}

}  // namespace gpusonde::serve
