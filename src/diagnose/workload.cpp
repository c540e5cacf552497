// SPDX-License-Identifier: Apache-2.0
#include "diagnose/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ranges>
#include <utility>

#include "diagnose/explain.h"
#include "diagnose/signals.h"

namespace gpusonde::diagnose {
namespace {

// Clean steps kept per type, for at least 10 s: a slow onset may be taken for clean for seconds.
constexpr size_t kMinCleanOfType = 32, kMaxCleanOfType = 512;
constexpr int64_t kCleanNs = 10 * kNanosPerSecond;
constexpr size_t kRecent = 400;
constexpr size_t kMaxReports = 1000;  // per program, which may run for months
// The watermark is estimated from the out-of-orderness of this many rounds with work, plus a margin.
constexpr size_t kRounds = 40, kMinRounds = 8;
constexpr int64_t kMarginNs = 20 * kNanosPerMilli;
constexpr int64_t kMaxAgeNs = 30 * kNanosPerSecond;
// How often an open incident is explained anew; more often while it is young and unexplained.
constexpr int64_t kUpdateNs = kNanosPerSecond / 2, kYoungUpdateNs = kNanosPerSecond / 5;
constexpr int64_t kYoungNs = 5 * kNanosPerSecond;
// The calm period compared with: this long before the onset, or before the previous incident if the time
// between the two is shorter than kMinCalmNs.
constexpr int64_t kBeforeNs = 60 * kNanosPerSecond;
constexpr int64_t kMinCalmNs = 5 * kNanosPerSecond;

double IdleOf(const PathAccount& path) {
  double idle = path.states[State::kWaiting] + path.states[State::kUnexplained];
  for (const auto& [who, rank] : path.ranks) idle += rank.idle;
  return idle;
}

// When the path begins to wait for loaders, their whole CPU time appears on it that was hidden behind GPU
// work before, and looks like excess. If loaders don't run longer than before, they were delayed by something
// else: this part of the excess is moved to the states in which they spent more time.
void BlameLoaders(const PathAccount& before, PathAccount& during) {
  double late = std::max(0.0, during.states[State::kLoader] - before.states[State::kLoader]);
  late -= std::max(0.0, during.loaders[State::kLoader] - before.loaders[State::kLoader]);
  constexpr std::array kReasons = {State::kRunQueue,    State::kRunQueueOwn, State::kThrottled,
                                   State::kBlocked,     State::kBlockedIo,   State::kReclaim,
                                   State::kInterrupted, State::kIoThrottled, State::kNetwork};
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

}  // namespace

std::vector<model::Batch> Diagnosis::Shared::DrainRows() {
  std::vector<model::Batch> batches;
  const auto drain = [&](auto& builder) {
    if (builder.rows() > 0) batches.push_back(builder.Take());
  };
  drain(steps);
  drain(incidents);
  drain(evidence);
  drain(warnings);
  return batches;
}

Diagnosis::Workload::Workload(const Id128& process, Shared& shared, std::function<void(const Report&)> report)
    : process_(process), shared_(shared), on_report_(std::move(report)) {
  program_.process = process;
}

bool Diagnosis::Workload::is_slow() const {
  return detector_.open() && !reports_.empty() && ExitedNs() == INT64_MAX;
}

void Diagnosis::Workload::Ingest(const Work& work, std::optional<Id128> device) {
  if (ended_ns_.has_value()) return;  // all its steps were evaluated
  if (device.has_value() && !device->IsZero()) devices_.insert(*device);
  const Interval interval{work.time_ns - work.length_ns, work.time_ns};
  round_ = {std::min(round_.start_ns, work.time_ns), std::max(round_.end_ns, work.time_ns)};
  if (work.kind == Work::Kind::kKernel) gpu_.kernels.push_back(interval);
  if (work.kind == Work::Kind::kCopy) gpu_.copies.push_back(interval);
  if (work.kind == Work::Kind::kSync) gpu_.syncs.push_back(interval);
  finder_.Ingest(work);
}

// A session's row comes when it begins and again when it ends; a recording keeps only the last one.
// A new session may come from another agent, whose out-of-orderness is learnt anew.
void Diagnosis::Workload::Ingest(const model::GpuSession& session) {
  if (session.session > session_ && session.start_ns > 0) {
    SetObserved(session.start_ns, true);
    out_of_order_ns_.clear();
  }
  session_ = std::max(session_, session.session);
  if (session.end_ns.has_value()) SetObserved(*session.end_ns, false);
}

void Diagnosis::Workload::MarkUnobserved(int64_t from_ns, int64_t to_ns) {
  SetObserved(from_ns, false);
  SetObserved(to_ns, true);
}

// Returns the watermark: all work that ended before it has arrived. Each round delivers what a process did
// until shortly before, in some order. The next round's out-of-orderness is estimated from how far recent
// rounds reached behind the newest work of the round before.
int64_t Diagnosis::Workload::UpdateWatermark(int64_t now_ns, int64_t allowed_lateness_ns) {
  if (round_.end_ns > 0) {
    if (newest_ns_ > 0) out_of_order_ns_.push_back(std::max<int64_t>(0, newest_ns_ - round_.start_ns));
    age_ns_.push_back(std::clamp<int64_t>(now_ns - round_.start_ns, 0, kMaxAgeNs));
    if (out_of_order_ns_.size() > kRounds) out_of_order_ns_.pop_front();
    if (age_ns_.size() > kRounds) age_ns_.pop_front();
    newest_ns_ = std::max(newest_ns_, std::min(round_.end_ns, now_ns));
    round_ = {INT64_MAX, 0};
  }
  // An agent that is short of CPU time polls late.
  const int64_t oldest_ns = age_ns_.empty() ? 0 : std::ranges::max(age_ns_);
  int64_t watermark_ns = now_ns - std::max(allowed_lateness_ns, oldest_ns + oldest_ns / 4);
  if (out_of_order_ns_.size() >= kMinRounds) {
    const int64_t max_ns = std::ranges::max(out_of_order_ns_);
    watermark_ns = std::max(watermark_ns, newest_ns_ - max_ns - max_ns / 4 - kMarginNs);
  }
  return watermark_ns_ = std::max(watermark_ns_, watermark_ns);
}

void Diagnosis::Workload::Advance(int64_t now_ns, int64_t allowed_lateness_ns) {
  now_ns_ = now_ns;
  if (ended_ns_.has_value()) return;
  ProcessUntil(UpdateWatermark(now_ns, allowed_lateness_ns));
  CompleteAccounts(now_ns - allowed_lateness_ns);
  if (const int64_t exited_ns = ExitedNs(); exited_ns < now_ns - allowed_lateness_ns) EndAt(exited_ns);
}

int64_t Diagnosis::Workload::ExitedNs() const {
  const model::Process* row = shared_.actors.Find(process_);
  return row == nullptr ? INT64_MAX : row->exited_ns.value_or(INT64_MAX);
}

// An open incident ends with its program.
void Diagnosis::Workload::EndAt(int64_t time_ns) {
  ended_ns_ = time_ns;
  SetObserved(time_ns, false);
  ProcessUntil(now_ns_);
  CompleteAccounts(INT64_MAX);
  if (!detector_.open()) return;
  reports_.back().incident.end_ns = time_ns;
  WriteReport(Describe(detector_.onset_ns(), time_ns, unfinished_ns_.has_value()));
}

void Diagnosis::Workload::ProcessUntil(int64_t time_ns) {
  // Descendants count as the program's own.
  program_.family = shared_.actors.FamilyOf(process_);
  program_.launch_thread = LaunchThread();
  shared_.launch_threads[process_] = program_.launch_thread;
  program_.launch_threads = shared_.launch_threads;
  program_.launch_threads.erase(process_);
  // Forget ended processes.
  std::erase_if(program_.loaders, [&](const Id128& loader) { return !program_.family.contains(loader); });
  std::erase_if(program_.ranks, [&](const Id128& rank) { return !program_.launch_threads.contains(rank); });
  signals_known_ |= shared_.host.Knows(process_);
  for (std::vector<Interval>* intervals : {&gpu_.kernels, &gpu_.copies, &gpu_.syncs})
    std::ranges::sort(*intervals, {}, &Interval::start_ns);
  std::ranges::sort(observation_changes_);
  while (!observation_changes_.empty() && observation_changes_.front().first < time_ns) {
    const int64_t change_ns = observation_changes_.front().first + 1;  // include work that ended right then
    for (const StepSpan& step : finder_.Advance(change_ns)) AddStep(step);
    observed_ = observation_changes_.front().second;
    for (const StepSpan& step : finder_.Gap(change_ns, observed_)) AddStep(step);
    if (observed_) observed_since_ns_ = change_ns;
    observation_changes_.pop_front();
  }
  for (const StepSpan& step : finder_.Advance(time_ns)) AddStep(step);
  if (observed_) CheckUnfinished(time_ns);
  int64_t needed_ns = finder_.needed_since_ns().value_or(time_ns);
  if (incomplete_ > 0) needed_ns = std::min(needed_ns, recent_[recent_.size() - incomplete_].from_ns);
  for (std::vector<Interval>* intervals : {&gpu_.kernels, &gpu_.copies, &gpu_.syncs})
    std::erase_if(*intervals, [&](const Interval& interval) { return interval.end_ns <= needed_ns; });
}

void Diagnosis::Workload::Finish(int64_t time_ns) {
  if (ended_ns_.has_value()) return;
  now_ns_ = time_ns;
  if (const int64_t exited_ns = ExitedNs(); exited_ns <= time_ns) {
    EndAt(exited_ns);
    return;
  }
  SetObserved(time_ns - 1, false);  // the unfinished step ends with the program
  ProcessUntil(time_ns);
  CompleteAccounts(time_ns);
  if (detector_.open()) Update(time_ns, unfinished_ns_.has_value());
}

void Diagnosis::Workload::Abandon(int64_t time_ns) {
  if (ended_ns_.has_value()) return;
  now_ns_ = time_ns;
  EndAt(std::min(time_ns, ExitedNs()));
}

// The thread with the most API calls and ranges; the main thread if there are none.
int32_t Diagnosis::Workload::LaunchThread() const {
  const auto most = std::ranges::max_element(threads_, {}, [](const auto& thread) { return thread.second; });
  if (most != threads_.end()) return most->first;
  const model::Process* row = shared_.actors.Find(process_);
  return row == nullptr ? 0 : row->pid;
}

PathAccount Diagnosis::Workload::AccountOf(int64_t from_ns, int64_t to_ns) {
  FindLoadersAndRanks(from_ns, to_ns);
  return AccountFor(program_, shared_.host, gpu_, from_ns, to_ns);
}

// Adds the processes that the launch thread waited for to the loaders or ranks.
void Diagnosis::Workload::FindLoadersAndRanks(int64_t from_ns, int64_t to_ns) {
  const ThreadTime time = shared_.host.Of(process_, program_.launch_thread, from_ns, to_ns);
  for (const auto* waits : {&time.waiting_for, &time.sent_by})
    for (const auto& [who, ns] : *waits) {
      if (ns <= 0 || who == process_) continue;
      if (program_.launch_threads.contains(who))
        program_.ranks.insert(who);
      else if (program_.family.contains(who) && program_.loaders.insert(who).second)
        ReaccountLoader(who);
    }
}

// A process that the program waits for for the first time was a loader before, so the steps since it started
// are accounted for again. It may have started just now, if the program starts one for each step.
void Diagnosis::Workload::ReaccountLoader(const Id128& loader) {
  const model::Process* row = shared_.actors.Find(loader);
  const int64_t since_ns = row == nullptr ? 0 : row->started_ns;
  const auto evaluate = [&](Accounted& accounted) {
    if (accounted.step.end_ns > since_ns)
      AccountForLoaders(program_, shared_.host, accounted.from_ns, accounted.step.end_ns, accounted.path);
  };
  for (auto& [type, accounts] : clean_) std::ranges::for_each(accounts, evaluate);
  for (Accounted& accounted : recent_) {
    const bool was_slow = accounted.slow;
    if (was_slow) RemoveSlow(accounted);
    evaluate(accounted);
    if (was_slow) AddSlow(accounted);
  }
}

// Excludes the wait for a request, which precedes the work on it.
Diagnosis::Workload::Accounted Diagnosis::Workload::Account(const StepSpan& span) {
  Accounted accounted{.step = span, .from_ns = span.start_ns, .path = AccountOf(span.start_ns, span.end_ns)};
  if (habit_.waits()) {
    const auto idle_ns = static_cast<int64_t>(accounted.path.RemoveIdle());
    accounted.step.start_ns = std::min(span.start_ns + idle_ns, span.end_ns - 1);
  }
  return accounted;
}

void Diagnosis::Workload::AddStep(const StepSpan& span) {
  // A cut step's length is unknown, unless its observed part already overran.
  if (span.cut && !(unfinished_ns_.has_value() && detector_.open())) return;
  recent_.push_back(Account(span));
  const StepSpan step = recent_.back().step;
  shared_.steps.Append({.process = process_,
                        .type = step.type,
                        .ordinal = ordinal_++,
                        .start_ns = step.start_ns,
                        .end_ns = step.end_ns});
  ++incomplete_;
  if (recent_.size() > kRecent) {
    if (!recent_.front().complete) CompleteAccount(recent_.front());
    recent_.pop_front();
  }
  unfinished_ns_.reset();
  if (detector_.open()) AddSlow(recent_.back());
  const bool was_open = detector_.open();
  switch (detector_.Ingest({step.type, step.start_ns, step.end_ns})) {
    case Detector::Verdict::kLearning:
    case Detector::Verdict::kClean:
      recent_.back().clean = true;
      if (habit_.Learn(recent_.back().path)) Restart();
      break;
    case Detector::Verdict::kSuspect:
      break;
    case Detector::Verdict::kSlow:
      if (!was_open) Begin();
      if (!was_open || IsUpdateDue(step.end_ns)) Update(step.end_ns, false);
      break;
    case Detector::Verdict::kClosed:
      Close();
      break;
    case Detector::Verdict::kWorse:  // the worse steps were counted in the first incident until now
      WriteEnded(reports_.back().incident.start_ns, detector_.recovered_ns());
      Begin();
      Update(step.end_ns, false);
      break;
  }
}

// Discards the baseline: steps from now on exclude waits for requests.
void Diagnosis::Workload::Restart() {
  detector_ = {};
  recent_.clear();
  incomplete_ = 0;
  clean_.clear();
  clean_since_ns_ = 0;
}

void Diagnosis::Workload::AddClean(const Accounted& accounted) {
  std::deque<Accounted>& of_type = clean_[accounted.step.type];
  of_type.push_back(accounted);
  while (of_type.size() > kMaxCleanOfType ||
         (of_type.size() > kMinCleanOfType && of_type.front().step.end_ns < accounted.step.end_ns - kCleanNs))
    of_type.pop_front();
  if (clean_since_ns_ == 0) clean_since_ns_ = accounted.step.start_ns;
}

void Diagnosis::Workload::AddSlow(Accounted& accounted) {
  accounted.slow = true;
  slow_.Add(accounted.path, 1);
  idle_ns_ = std::max(idle_ns_, IdleOf(accounted.path));
  ++slow_types_[accounted.step.type];
}

void Diagnosis::Workload::RemoveSlow(Accounted& accounted) {
  accounted.slow = false;
  slow_.Add(accounted.path, -1);
  --slow_types_[accounted.step.type];
}

// Accounts for the last time for all steps that ended until then.
void Diagnosis::Workload::CompleteAccounts(int64_t until_ns) {
  while (incomplete_ > 0) {
    Accounted& oldest = recent_[recent_.size() - incomplete_];
    if (oldest.step.end_ns > until_ns) break;
    CompleteAccount(oldest);
  }
}

void Diagnosis::Workload::CompleteAccount(Accounted& accounted) {
  const bool was_slow = accounted.slow;
  if (was_slow) RemoveSlow(accounted);
  accounted.path = AccountOf(accounted.from_ns, accounted.step.end_ns);
  if (habit_.waits()) accounted.path.RemoveIdle();
  accounted.complete = true;
  --incomplete_;
  if (was_slow) AddSlow(accounted);
  if (accounted.clean) AddClean(accounted);
}

void Diagnosis::Workload::CheckUnfinished(int64_t now_ns) {
  if (habit_.waits()) return;  // there may be no request
  const std::optional<int64_t> since_ns = finder_.unfinished_since_ns();
  if (!since_ns.has_value()) return;
  const bool was_open = detector_.open();
  if (detector_.Overrun(*since_ns, now_ns) != Detector::Verdict::kSlow) return;
  // Within an incident, slow steps do finish: only report an unfinished one after a second.
  if (was_open && !unfinished_ns_.has_value() && now_ns - *since_ns < kNanosPerSecond) return;
  unfinished_ns_ = now_ns - *since_ns;
  unfinished_ = AccountOf(*since_ns, now_ns);
  if (!was_open) Begin();
  if (!was_open || IsUpdateDue(now_ns)) Update(now_ns, true);
}

model::Incident Diagnosis::Workload::NewIncident() const {
  // Rows that arrived in another order may have shifted the onset by some steps.
  constexpr int64_t kAboutNs = 2 * kNanosPerSecond;
  const int64_t onset_ns = detector_.onset_ns();
  for (const model::Incident& earlier : earlier_incidents_) {
    if (std::abs(earlier.start_ns - onset_ns) > kAboutNs) continue;
    model::Incident again = earlier;
    again.end_ns.reset();
    return again;
  }
  model::Incident incident{.process = process_, .start_ns = onset_ns, .seen_ns = now_ns_};
  incident.incident = IdHasher("incident").Add(process_).Add(static_cast<uint64_t>(onset_ns)).Finish();
  return incident;
}

void Diagnosis::Workload::Begin() {
  // Steps since the onset aren't clean after all.
  for (auto& [type, accounts] : clean_)
    std::erase_if(accounts, [&](const Accounted& each) { return each.step.end_ns > detector_.onset_ns(); });
  std::erase_if(clean_, [](const auto& of_type) { return of_type.second.empty(); });
  slow_ = {};
  idle_ns_ = 0;
  slow_types_.clear();
  for (Accounted& accounted : recent_) {
    accounted.clean &= accounted.step.end_ns <= detector_.onset_ns();
    accounted.slow = false;
    if (accounted.step.start_ns >= detector_.onset_ns()) AddSlow(accounted);
  }
  // The baseline may be so short that none of its accounts is complete yet.
  if (clean_.empty()) CompleteAccounts(detector_.onset_ns());
  const int64_t over_ns = reports_.empty() ? 0 : reports_.back().incident.end_ns.value_or(0);
  const int64_t calm_since_ns = std::max(clean_since_ns_, over_ns);
  if (calm_.end_ns == 0 || detector_.onset_ns() - calm_since_ns >= kMinCalmNs)
    calm_ = {calm_since_ns, detector_.onset_ns()};
  reports_.push_back({.incident = NewIncident(), .anchor = finder_.anchor().value_or("")});
  if (reports_.size() > kMaxReports) reports_.erase(reports_.begin());
}

bool Diagnosis::Workload::IsUpdateDue(int64_t now_ns) const {
  const bool explained = reports_.back().incident.cause != kAbstain;
  const bool young = now_ns - detector_.onset_ns() < kYoungNs;
  return now_ns - updated_ns_ >= (young && !explained ? kYoungUpdateNs : kUpdateNs);
}

void Diagnosis::Workload::Update(int64_t now_ns, bool unfinished) {
  updated_ns_ = now_ns;
  WriteReport(Describe(detector_.onset_ns(),
                       unfinished ? now_ns : std::min(now_ns, detector_.slow_until_ns()), unfinished));
}

void Diagnosis::Workload::Close() {
  WriteEnded(detector_.onset_ns(), detector_.recovered_ns());
  recent_.clear();
}

void Diagnosis::Workload::WriteEnded(int64_t onset_ns, int64_t end_ns) {
  CompleteAccounts(INT64_MAX);
  reports_.back().incident.end_ns = end_ns;
  WriteReport(Describe(onset_ns, end_ns, false));
}

// Describes the incident until `until_ns`. Later steps were counted as slow, but belong to the recovery or
// may.
Situation Diagnosis::Workload::Describe(int64_t onset_ns, int64_t until_ns, bool unfinished) const {
  Situation situation{.onset_ns = onset_ns, .slowdown = detector_.slowdown()};
  situation.unfinished = unfinished;
  situation.silent_ns = std::max<int64_t>(until_ns - std::max(finder_.last_work_ns(), observed_since_ns_), 0);
  situation.signals_known = signals_known_;
  situation.idle_ns = idle_ns_;
  PathAccount before, during = slow_;
  std::map<Id128, int64_t> types = slow_types_;
  for (const Accounted& accounted : recent_ | std::views::reverse) {
    if (accounted.step.start_ns < until_ns) break;
    if (!accounted.slow) continue;
    during.Add(accounted.path, -1);
    --types[accounted.step.type];
  }
  during.states.DropNegative();  // accounts were subtracted
  during.loaders.DropNegative();
  int64_t steps = 0;
  const auto add_before = [&](const Id128& type, int64_t count) {
    steps += count;
    auto clean = clean_.find(type);
    if (clean == clean_.end()) clean = clean_.begin();
    if (clean == clean_.end()) return;
    const double share = static_cast<double>(count) / static_cast<double>(clean->second.size());
    for (const Accounted& accounted : clean->second) before.Add(accounted.path, share);
  };
  for (const auto& [type, count] : types) add_before(type, count);
  if (unfinished && unfinished_ns_.has_value()) {
    during.Add(unfinished_, 1);
    situation.idle_ns = std::max(situation.idle_ns, IdleOf(unfinished_));
    // Its type isn't known yet: assume that of the previous step.
    add_before(recent_.empty() ? Id128{} : recent_.back().step.type, 1);
  }
  const double each = 1 / static_cast<double>(std::max<int64_t>(steps, 1));
  situation.loader_cpu_before = each * before.loaders[State::kLoader];
  situation.loader_cpu_during = each * during.loaders[State::kLoader];
  BlameLoaders(before, during);
  situation.before = before.states;
  situation.during = during.states;
  if (situation.before.total() > 0) situation.slowdown = situation.during.total() / situation.before.total();
  situation.before *= each;
  situation.during *= each;
  const auto by_actor = [&](const std::map<Id128, double>& by_process, Shares& actors) {
    for (const auto& [who, ns] : by_process)
      AddShare(actors, shared_.actors.ActorOf(who, program_.family), each * ns);
  };
  by_actor(before.behind, situation.cpu_before);
  by_actor(during.behind, situation.cpu_during);
  DescribeRanks(before, during, each, situation);
  DescribeSignals({.process = process_,
                   .program = program_,
                   .devices = devices_,
                   .host = shared_.host,
                   .actors = shared_.actors,
                   .calm = {std::max(calm_.start_ns, calm_.end_ns - kBeforeNs), calm_.end_ns},
                   .incident = {onset_ns, std::max(until_ns, onset_ns + 1)}},
                  situation);
  return situation;
}

// Describes the ranks that the program waited for, with the causes of their own incidents.
void Diagnosis::Workload::DescribeRanks(const PathAccount& before, const PathAccount& during, double each,
                                        Situation& situation) const {
  const auto by_actor = [&](const std::map<Id128, double>& by_process, Shares& actors) {
    for (const auto& [who, ns] : by_process)
      AddShare(actors, shared_.actors.ActorOf(who, program_.family), each * ns);
  };
  for (const auto& [who, rank] : during.ranks) {
    const model::Process* row = shared_.actors.Find(who);
    RankPart part{
        .name = row == nullptr ? "another process" : fmt::format("{} (process {})", row->name, row->pid),
        .during = rank.states,
        .idle_during = each * rank.idle};
    part.during *= each;
    by_actor(rank.behind, part.cpu_during);
    if (const auto was = before.ranks.find(who); was != before.ranks.end()) {
      part.before = was->second.states;
      part.before *= each;
      part.idle_before = each * was->second.idle;
      by_actor(was->second.behind, part.cpu_before);
    }
    if (const auto last = shared_.last_reports.find(who);
        last != shared_.last_reports.end() && last->second.end_ns.value_or(INT64_MAX) > situation.onset_ns) {
      part.cause = last->second.cause;
      part.because = last->second.because;
    }
    situation.ranks.push_back(std::move(part));
  }
}

void Diagnosis::Workload::WriteReport(const Situation& situation) {
  Report& report = reports_.back();
  const std::string cause_before = report.incident.cause;
  const bool ended = report.incident.end_ns.has_value();
  const model::Process* row = shared_.actors.Find(process_);
  report.process_name = row == nullptr ? "" : row->name;
  report.pid = row == nullptr ? 0 : row->pid;
  report.causes = Rank(situation);
  report.incident.slowdown = situation.slowdown;
  Explain(situation, report);
  if (report.incident.cause != cause_before)
    report.incident.named_ns = report.incident.cause == kAbstain ? std::nullopt : std::optional(now_ns_);
  shared_.last_reports[process_] = {
      .cause = report.incident.cause,
      .because = report.causes.empty() ? "" : report.causes.front().finding.sentence,
      .start_ns = report.incident.start_ns,
      .end_ns = report.incident.end_ns};
  shared_.incidents.Append(report.incident);
  for (const model::Evidence& evidence : report.evidence) shared_.evidence.Append(evidence);
  for (const model::Warning& warning : shared_.forewarner.Ingest(report.incident, devices_))
    shared_.warnings.Append(warning);
  if (ended || report.incident.cause != cause_before) on_report_(report);
}

}  // namespace gpusonde::diagnose
