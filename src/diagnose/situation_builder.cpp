// SPDX-License-Identifier: Apache-2.0
#include "diagnose/situation_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>

#include "base/time.h"
#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/incident_table.h"
#include "diagnose/signals.h"

namespace gpusonde::diagnose {
namespace {

// When the path begins to wait for loaders, their whole CPU time appears on it that was hidden behind GPU
// work before, and looks like excess. If loaders don't run longer than before, they were delayed by something
// else: this part of the excess is moved to the states in which they spent more time.
void BlameLoaders(const PathAccount& before, PathAccount& during) {
  double late = std::max(0.0, during.states[State::kLoader] - before.states[State::kLoader]);
  late -= std::max(0.0, during.loaders[State::kLoader] - before.loaders[State::kLoader]);
  constexpr std::array kReasons = {
      State::kRunQueue, State::kRunQueueOwn, State::kThrottled,   State::kBlocked, State::kBlockedIo,
      State::kReclaim,  State::kInterrupted, State::kIoThrottled, State::kNetwork, State::kStopped};
  double grown = 0;
  for (const State reason : kReasons) grown += std::max(0.0, during.loaders[reason] - before.loaders[reason]);
  if (late <= 0 || grown <= 0) return;
  const double moved = std::min(late, grown);
  during.states[State::kLoader] -= moved;
  for (const State reason : kReasons)
    during.states[reason] += moved / grown * std::max(0.0, during.loaders[reason] - before.loaders[reason]);
  for (const auto& [who, ns] : during.loaders_behind) {
    const auto was = before.loaders_behind.find(who);
    const double rise = ns - (was == before.loaders_behind.end() ? 0 : was->second);
    if (rise > 0) during.behind[who] += moved / grown * rise;
  }
}

// Describes a rank that the program waited for, with the cause of its own incident.
RankPart DescribeRank(const Id128& who, const RankAccount* before, const RankAccount& during, double per_step,
                      int64_t onset_ns, const SituationContext& context) {
  const model::Process* row = context.actors.Find(who);
  RankPart part{
      .name = row == nullptr ? "another process" : fmt::format("{} (process {})", row->name, row->pid),
      .during = during.states,
      .idle_during = per_step * during.idle};
  part.during *= per_step;
  part.cpu_during = SharesOf(during.behind, per_step, context);
  if (before != nullptr) {
    part.before = before->states;
    part.before *= per_step;
    part.idle_before = per_step * before->idle;
    part.cpu_before = SharesOf(before->behind, per_step, context);
  }
  if (const auto last = context.last_reports.find(who);
      last != context.last_reports.end() && last->second.end_ns.value_or(INT64_MAX) > onset_ns) {
    part.cause = last->second.cause;
    part.because = last->second.because;
  }
  return part;
}

// Whether this cause of another rank's slow steps may be what this rank polled for. A rank that polls for a
// third one, or for this one, has those that are excluded itself.
bool MayDelayOthers(std::optional<CauseId> cause) {
  return cause.has_value() && *cause != CauseId::kMoreCpuWork && *cause != CauseId::kSlowCpu &&
         *cause != CauseId::kStraggler;
}

// The other rank of the job that the program waited for without sleeping. Processes with the same parent and
// name that are slow at the same time, in steps that take equally long, go in lockstep. The zero id if there
// is none.
Id128 PolledRank(const Situation& situation, const SituationContext& context) {
  constexpr double kAlike = 0.2;  // of a step, by which means over parts of an incident differ
  const model::Process* own = context.actors.Find(context.program.process);
  if (own == nullptr || own->parent_pid <= 1) return {};  // init starts unrelated ones
  const double step_ns = situation.during.total();
  // Contention that both have is the cause of both.
  const bool contended =
      situation.excess(State::kRunQueue) >= kWeights.ranking.min_named * situation.lost_ns();
  Id128 polled;
  // Ranks that poll take each other's CPUs, so that they seem to come last as well: another cause is
  // preferred.
  std::pair best(true, kAlike * step_ns);
  for (const auto& [who, report] : context.last_reports) {
    const model::Process* other = context.actors.Find(who);
    if (other == nullptr || other == own || other->parent_pid != own->parent_pid ||
        other->name != own->name || !MayDelayOthers(report.cause) ||
        (contended && report.cause == CauseId::kCpuContention) ||
        report.end_ns.value_or(INT64_MAX) <= situation.onset_ns ||
        report.onset_ns > situation.onset_ns + kIncidentTable.report.same_onset_ns)
      continue;
    const double difference_ns = std::abs(report.step_ns - step_ns);
    const std::pair match(report.cause == CauseId::kCpuContention, difference_ns);
    if (difference_ns > kAlike * step_ns || match > best) continue;
    polled = who;
    best = match;
  }
  return polled;
}

// A rank that waits for another one in a loop, as those of OpenMPI do, runs meanwhile: its wait looks like
// work of its own. If the other rank's slow steps have a cause that isn't such a loop, that is what this rank
// waited for.
void BlamePolledRank(const SituationContext& context, Situation& situation) {
  const double polled_ns = situation.excess(State::kCpu);
  if (polled_ns <= 0) return;
  const Id128 rank = PolledRank(situation, context);
  if (rank.IsZero()) return;
  situation.during[State::kCpu] -= polled_ns;
  situation.during[State::kPeer] += polled_ns;
  RankAccount late;
  late.states[State::kWaiting] = polled_ns;  // what it did is in its own incident
  situation.ranks.push_back(DescribeRank(rank, nullptr, late, 1, situation.onset_ns, context));
}

// Whether a process is, by a metric of the time in that state, in it until now.
bool IsIn(model::Metric metric, const Id128& process, int64_t now_ns, const SituationContext& context) {
  constexpr int64_t kLatelyNs = 3 * kNanosPerSecond;  // it is read once a second
  constexpr double kMinNs = kNanosPerSecond;
  return context.host.SumOf(metric, process, {now_ns - kLatelyNs, now_ns}).value_or(0) >= kMinNs;
}

// Those that lived long enough to be a part of how the program works, and not one step's.
std::vector<HelperPart> DescribeHelpers(const IncidentView& incident, const SituationContext& context) {
  constexpr int64_t kMinLifeNs = 2 * kNanosPerSecond;
  // A loader's end is noticed when the batches that it left are used up.
  constexpr int64_t kEndedBeforeNs = 10 * kNanosPerSecond;
  constexpr int64_t kEndedAfterNs = kNanosPerSecond;
  constexpr size_t kMaxHelpers = 64;
  std::vector<HelperPart> helpers;
  const auto lasted_ns = static_cast<double>(std::max<int64_t>(incident.until_ns - incident.onset_ns, 1));
  for (const Id128& process : context.program.family) {
    const model::Process* row = context.actors.Find(process);
    if (row == nullptr || process == context.program.process || helpers.size() == kMaxHelpers) continue;
    const int64_t end_ns = row->exited_ns.value_or(INT64_MAX);
    const bool ended = end_ns < incident.onset_ns + kEndedAfterNs;
    const bool waited_for = context.program.loaders.contains(process);
    if (ended ? end_ns < incident.onset_ns - kEndedBeforeNs || end_ns - row->started_ns < kMinLifeNs
              : !incident.unfinished.has_value() || !waited_for ||
                    incident.onset_ns - row->started_ns < kMinLifeNs)
      continue;
    const double ran_ns = ended ? 0 : context.host.RunningOf(process, {incident.onset_ns, incident.until_ns});
    helpers.push_back({.name = fmt::format("{} (process {})", row->name, row->pid),
                       .waited_for = waited_for,
                       .ended = ended,
                       .busy = ran_ns / lasted_ns,
                       .stopped = IsIn(model::Metric::kProcessStopped, process, incident.until_ns, context),
                       .blocked = IsIn(model::Metric::kProcessBlocked, process, incident.until_ns, context)});
  }
  return helpers;
}

// The share of the time in which threads of the program's process ran, other than the launch thread.
double CpuOfOwnThreads(const SituationContext& context, const TimeRange& when) {
  const Program& program = context.program;
  const double others_ns =
      context.host.RunningOf(program.process, when) -
      context.host.Of(program.process, program.launch_thread, when)[ThreadState::kRunning];
  return std::max(0.0, others_ns) / static_cast<double>(std::max<int64_t>(when.to_ns - when.from_ns, 1));
}

// What takes more GPU time per step than before.
std::map<std::string, Change> GrownGpuTime(const GpuTimeByName& gpu_time, const Situation& situation,
                                           TimeRange calm, TimeRange incident) {
  constexpr size_t kMaxNames = 8;
  std::map<std::string, Change> grown;
  for (const auto& [name, share] : gpu_time.SharesIn(incident))
    grown[name] = {.before = 0, .during = share * situation.during.total()};
  for (const auto& [name, share] : gpu_time.SharesIn(calm))
    if (const auto during = grown.find(name); during != grown.end())
      during->second.before = share * situation.before.total();
  std::vector<std::pair<double, std::string>> rises;
  for (const auto& [name, change] : grown)
    if (change.rise() > 0) rises.emplace_back(change.rise(), name);
  std::ranges::sort(rises, std::greater());
  rises.resize(std::min(rises.size(), kMaxNames));
  std::map<std::string, Change> most;
  for (const auto& [rise, name] : rises) most.insert(grown.extract(name));
  return most;
}

}  // namespace

Shares SharesOf(const std::map<Id128, double>& by_process, double per_step, const SituationContext& context) {
  Shares shares;
  for (const auto& [who, ns] : by_process)
    AddShare(shares, context.actors.ActorOf(who, context.program.family), per_step * ns);
  return shares;
}

Situation BuildSituation(const IncidentView& incident, const SituationContext& context) {
  Situation situation{.tid = incident.tid, .onset_ns = incident.onset_ns, .slowdown = incident.slowdown};
  situation.cgroup = context.actors.ActorOf(context.program.process, context.program.family).cgroup;
  situation.unfinished = incident.unfinished.has_value();
  situation.silent_ns = std::max<int64_t>(incident.until_ns - incident.last_work_ns, 0);
  situation.signals_known = incident.signals_known;
  situation.before_is_later = incident.before_is_later;
  situation.idle_ns = incident.slow.max_idle_ns;
  PathAccount before, during = incident.slow.path;
  const auto add_step = [&](const Id128& type, int64_t count) {
    situation.steps += count;
    context.baseline.AddUsual(type, count, before);
  };
  for (const auto& [type, count] : incident.slow.types) add_step(type, count);
  if (incident.unfinished.has_value()) {
    situation.unfinished_ns = incident.unfinished->path.states.total();
    during.Add(incident.unfinished->path, 1);
    situation.idle_ns = std::max(situation.idle_ns, IdleNs(incident.unfinished->path));
    add_step(incident.unfinished->type, 1);
  }
  const double per_step = 1 / static_cast<double>(std::max<int64_t>(situation.steps, 1));
  situation.loader_cpu_before = per_step * before.loaders[State::kLoader];
  situation.loader_cpu_during = per_step * during.loaders[State::kLoader];
  BlameLoaders(before, during);
  situation.before = before.states;
  situation.during = during.states;
  if (situation.before.total() > 0) situation.slowdown = situation.during.total() / situation.before.total();
  situation.before *= per_step;
  situation.during *= per_step;
  situation.cpu_before = SharesOf(before.behind, per_step, context);
  situation.cpu_during = SharesOf(during.behind, per_step, context);
  situation.own_threads_before = per_step * before.own_threads;
  situation.own_threads_during = per_step * during.own_threads;
  situation.own_threads_idle_before = per_step * before.own_threads_idle;
  situation.own_threads_idle_during = per_step * during.own_threads_idle;
  before.halted.erase(context.program.process);
  during.halted.erase(context.program.process);
  situation.halted_before = SharesOf(before.halted, per_step, context);
  situation.halted_during = SharesOf(during.halted, per_step, context);
  situation.stopped_before = SharesOf(before.stopped_by, per_step, context);
  situation.stopped_during = SharesOf(during.stopped_by, per_step, context);
  situation.outside_before = SharesOf(before.waited_outside, per_step, context);
  situation.outside_during = SharesOf(during.waited_outside, per_step, context);
  situation.ran_before = SharesOf(before.ran, per_step, context);
  situation.ran_during = SharesOf(during.ran, per_step, context);
  const auto take_own = [&](std::map<Id128, double>& slept) {
    const auto own = slept.extract(context.program.process);
    return own.empty() ? 0.0 : per_step * own.mapped();
  };
  situation.own_threads_slept_before = take_own(before.slept);
  situation.own_threads_slept_during = take_own(during.slept);
  situation.slept_before = SharesOf(before.slept, per_step, context);
  situation.slept_during = SharesOf(during.slept, per_step, context);
  for (const auto& [who, rank] : during.ranks) {
    const auto was = before.ranks.find(who);
    situation.ranks.push_back(DescribeRank(who, was == before.ranks.end() ? nullptr : &was->second, rank,
                                           per_step, incident.onset_ns, context));
  }
  BlamePolledRank(context, situation);
  situation.helpers = DescribeHelpers(incident, context);
  const TimeRange lasted = {incident.onset_ns, std::max(incident.until_ns, incident.onset_ns + 1)};
  situation.gpu_time = GrownGpuTime(context.gpu_time, situation, context.baseline.calm(), lasted);
  if (WaitsForOwnThreads(situation)) {  // costly, as it reads a minute of all threads
    situation.own_threads_cpu_before =
        situation.before.total() * CpuOfOwnThreads(context, context.baseline.calm());
    situation.own_threads_cpu_during = situation.during.total() * CpuOfOwnThreads(context, lasted);
  }
  DescribeSignals({.program = context.program,
                   .devices = context.devices,
                   .host = context.host,
                   .actors = context.actors,
                   .calm = context.baseline.calm(),
                   .incident = lasted},
                  situation);
  return situation;
}

}  // namespace gpusonde::diagnose
