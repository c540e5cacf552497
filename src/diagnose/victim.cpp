// SPDX-License-Identifier: Apache-2.0
#include "diagnose/victim.h"

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

// Clean steps of a type that are remembered: what is slow may have been taken for clean for seconds.
constexpr size_t kLeastCleanOfType = 32, kMostCleanOfType = 512;
constexpr int64_t kCleanNs = 10 * kNanosPerSecond;
constexpr size_t kRecent = 400;
constexpr size_t kMostReports = 1000;  // of a program that runs for months
// From the disorder of so many rounds with work the next one's is foreseen, with a margin.
constexpr size_t kRounds = 40, kLeastRounds = 8;
constexpr int64_t kMarginNs = 20 * kNanosPerMilli;
constexpr int64_t kMostAgeNs = 30 * kNanosPerSecond;
// An open incident is explained anew so often; in every round while it is young and nothing explains it.
constexpr int64_t kUpdateNs = kNanosPerSecond / 2, kYoungUpdateNs = kNanosPerSecond / 5;
constexpr int64_t kYoungNs = 5 * kNanosPerSecond;
// What is compared with: so much time before the onset, or before incidents that it follows sooner than that.
constexpr int64_t kBeforeNs = 60 * kNanosPerSecond;
constexpr int64_t kLeastCalmNs = 5 * kNanosPerSecond;

double IdleOf(const PathAccount& path) {
  double idle = path.states[State::kWaiting] + path.states[State::kUnexplained];
  for (const auto& [who, rank] : path.ranks) idle += rank.idle;
  return idle;
}

// Where a step has come to wait for its loaders, their running is on its path that was hidden behind the GPU
// before, and looks like excess. What they run no longer than before isn't what made them late: that part of
// the excess goes to what they did more of.
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

std::vector<model::Batch> Diagnosis::Shared::TakeRows() {
  std::vector<model::Batch> batches;
  const auto take = [&](auto& builder) {
    if (builder.rows() > 0) batches.push_back(builder.Take());
  };
  take(steps);
  take(incidents);
  take(evidence);
  take(warnings);
  return batches;
}

Diagnosis::Victim::Victim(const Id128& process, Shared& shared, std::function<void(const Report&)> tell)
    : process_(process), shared_(shared), tell_(std::move(tell)) {
  program_.process = process;
}

bool Diagnosis::Victim::is_slow() const {
  return detector_.open() && !reports_.empty() && ExitedNs() == INT64_MAX;
}

void Diagnosis::Victim::Take(const Work& work, std::optional<Id128> device) {
  if (ended_ns_.has_value()) return;  // and its time has been looked at
  if (device.has_value() && !device->IsZero()) devices_.insert(*device);
  const Interval interval{work.time_ns - work.length_ns, work.time_ns};
  taken_ = {std::min(taken_.start_ns, work.time_ns), std::max(taken_.end_ns, work.time_ns)};
  if (work.kind == Work::Kind::kKernel) gpu_.kernels.push_back(interval);
  if (work.kind == Work::Kind::kCopy) gpu_.copies.push_back(interval);
  if (work.kind == Work::Kind::kSync) gpu_.syncs.push_back(interval);
  finder_.Take(work);
}

// A session's row comes when it begins, and again when it ends; in a recording only the last one lies.
// Another agent may hand over the rows of another session.
void Diagnosis::Victim::Take(const model::GpuSession& session) {
  if (session.session > session_ && session.start_ns > 0) {
    Hear(session.start_ns, true);
    disorder_ns_.clear();
  }
  session_ = std::max(session_, session.session);
  if (session.end_ns.has_value()) Hear(*session.end_ns, false);
}

void Diagnosis::Victim::TakeUnobserved(int64_t from_ns, int64_t to_ns) {
  Hear(from_ns, false);
  Hear(to_ns, true);
}

// Work that ended before this time will not be told of any more. Rounds hand over what a process did until
// shortly before, in their own order; how far back one reaches behind the one before says how much to wait
// for.
int64_t Diagnosis::Victim::SettledBefore(int64_t now_ns, int64_t lateness_ns) {
  if (taken_.end_ns > 0) {
    if (newest_ns_ > 0) disorder_ns_.push_back(std::max<int64_t>(0, newest_ns_ - taken_.start_ns));
    age_ns_.push_back(std::clamp<int64_t>(now_ns - taken_.start_ns, 0, kMostAgeNs));
    if (disorder_ns_.size() > kRounds) disorder_ns_.pop_front();
    if (age_ns_.size() > kRounds) age_ns_.pop_front();
    newest_ns_ = std::max(newest_ns_, std::min(taken_.end_ns, now_ns));
    taken_ = {INT64_MAX, 0};
  }
  // An agent that hardly gets a CPU reads late.
  const int64_t oldest_ns = age_ns_.empty() ? 0 : std::ranges::max(age_ns_);
  int64_t settled_ns = now_ns - std::max(lateness_ns, oldest_ns + oldest_ns / 4);
  if (disorder_ns_.size() >= kLeastRounds) {
    const int64_t most_ns = std::ranges::max(disorder_ns_);
    settled_ns = std::max(settled_ns, newest_ns_ - most_ns - most_ns / 4 - kMarginNs);
  }
  return settled_ns_ = std::max(settled_ns_, settled_ns);
}

void Diagnosis::Victim::Advance(int64_t now_ns, int64_t lateness_ns) {
  now_ns_ = now_ns;
  if (ended_ns_.has_value()) return;
  LookUntil(SettledBefore(now_ns, lateness_ns));
  Settle(now_ns - lateness_ns);
  if (const int64_t exited_ns = ExitedNs(); exited_ns < now_ns - lateness_ns) EndAt(exited_ns);
}

int64_t Diagnosis::Victim::ExitedNs() const {
  const model::Process* row = shared_.parties.Find(process_);
  return row == nullptr ? INT64_MAX : row->exited_ns.value_or(INT64_MAX);
}

// An incident of a program that has ended is over with it.
void Diagnosis::Victim::EndAt(int64_t time_ns) {
  ended_ns_ = time_ns;
  Hear(time_ns, false);
  LookUntil(now_ns_);
  Settle(INT64_MAX);
  if (!detector_.open()) return;
  reports_.back().incident.end_ns = time_ns;
  WriteReport(Describe(detector_.onset_ns(), time_ns, unfinished_ns_.has_value()));
}

void Diagnosis::Victim::LookUntil(int64_t time_ns) {
  // The program's own threads are told apart from others by who descends from it.
  program_.family = shared_.parties.FamilyOf(process_);
  program_.feeder = Feeder();
  shared_.feeders[process_] = program_.feeder;
  program_.feeders = shared_.feeders;
  program_.feeders.erase(process_);
  // Of those that ended long ago nothing is known any more.
  std::erase_if(program_.loaders, [&](const Id128& loader) { return !program_.family.contains(loader); });
  std::erase_if(program_.ranks, [&](const Id128& rank) { return !program_.feeders.contains(rank); });
  signals_known_ |= shared_.host.Knows(process_);
  for (std::vector<Interval>* intervals : {&gpu_.kernels, &gpu_.copies, &gpu_.syncs})
    std::ranges::sort(*intervals, {}, &Interval::start_ns);
  std::ranges::sort(hearing_);
  while (!hearing_.empty() && hearing_.front().first < time_ns) {
    const int64_t change_ns = hearing_.front().first + 1;  // what came then belongs to before
    for (const StepSpan& step : finder_.Advance(change_ns)) TakeStep(step);
    heard_ = hearing_.front().second;
    for (const StepSpan& step : finder_.Gap(change_ns, heard_)) TakeStep(step);
    if (heard_) heard_since_ns_ = change_ns;
    hearing_.pop_front();
  }
  for (const StepSpan& step : finder_.Advance(time_ns)) TakeStep(step);
  if (heard_) LookAtUnfinished(time_ns);
  int64_t needed_ns = finder_.needed_since_ns().value_or(time_ns);
  if (unsettled_ > 0) needed_ns = std::min(needed_ns, recent_[recent_.size() - unsettled_].from_ns);
  for (std::vector<Interval>* intervals : {&gpu_.kernels, &gpu_.copies, &gpu_.syncs})
    std::erase_if(*intervals, [&](const Interval& interval) { return interval.end_ns <= needed_ns; });
}

void Diagnosis::Victim::Finish(int64_t time_ns) {
  if (ended_ns_.has_value()) return;
  now_ns_ = time_ns;
  if (const int64_t exited_ns = ExitedNs(); exited_ns <= time_ns) {
    EndAt(exited_ns);
    return;
  }
  Hear(time_ns - 1, false);  // an unfinished step ends with its program
  LookUntil(time_ns);
  Settle(time_ns);
  if (detector_.open()) Update(time_ns, unfinished_ns_.has_value());
}

void Diagnosis::Victim::Abandon(int64_t time_ns) {
  if (ended_ns_.has_value()) return;
  now_ns_ = time_ns;
  EndAt(std::min(time_ns, ExitedNs()));
}

// The thread that was seen most to put work on the GPU, or to say what it does; else the first one.
int32_t Diagnosis::Victim::Feeder() const {
  const auto most = std::ranges::max_element(threads_, {}, [](const auto& thread) { return thread.second; });
  if (most != threads_.end()) return most->first;
  const model::Process* row = shared_.parties.Find(process_);
  return row == nullptr ? 0 : row->pid;
}

PathAccount Diagnosis::Victim::AccountOf(int64_t from_ns, int64_t to_ns) {
  FindOthers(from_ns, to_ns);
  return AccountFor(program_, shared_.host, gpu_, from_ns, to_ns);
}

// Whom the program waits for: its loaders, and other ranks.
void Diagnosis::Victim::FindOthers(int64_t from_ns, int64_t to_ns) {
  const ThreadTime time = shared_.host.Of(process_, program_.feeder, from_ns, to_ns);
  for (const auto* waits : {&time.waiting_for, &time.sent_by})
    for (const auto& [who, ns] : *waits) {
      if (ns <= 0 || who == process_) continue;
      if (program_.feeders.contains(who))
        program_.ranks.insert(who);
      else if (program_.family.contains(who) && program_.loaders.insert(who).second)
        LookAtLoadersAgain(who);
    }
}

// A process that nobody had to wait for until now has loaded before, too: since it began, which may be just
// now where a program starts one for each step.
void Diagnosis::Victim::LookAtLoadersAgain(const Id128& loader) {
  const model::Process* row = shared_.parties.Find(loader);
  const int64_t since_ns = row == nullptr ? 0 : row->started_ns;
  const auto look = [&](Accounted& accounted) {
    if (accounted.step.end_ns > since_ns)
      AccountForLoaders(program_, shared_.host, accounted.from_ns, accounted.step.end_ns, accounted.path);
  };
  for (auto& [type, accounts] : clean_) std::ranges::for_each(accounts, look);
  for (Accounted& accounted : recent_) {
    const bool was_slow = accounted.slow;
    if (was_slow) RemoveSlow(accounted);
    look(accounted);
    if (was_slow) AddSlow(accounted);
  }
}

// A wait for a request comes before what is done for it.
Diagnosis::Victim::Accounted Diagnosis::Victim::Account(const StepSpan& span) {
  Accounted accounted{.step = span, .from_ns = span.start_ns, .path = AccountOf(span.start_ns, span.end_ns)};
  if (habit_.waits()) {
    const auto idle_ns = static_cast<int64_t>(accounted.path.TakeIdle());
    accounted.step.start_ns = std::min(span.start_ns + idle_ns, span.end_ns - 1);
  }
  return accounted;
}

void Diagnosis::Victim::TakeStep(const StepSpan& span) {
  // Nobody knows how long it was, but where what was heard of it is too long already.
  if (span.cut && !(unfinished_ns_.has_value() && detector_.open())) return;
  recent_.push_back(Account(span));
  const StepSpan step = recent_.back().step;
  shared_.steps.Append({.process = process_,
                        .type = step.type,
                        .ordinal = ordinal_++,
                        .start_ns = step.start_ns,
                        .end_ns = step.end_ns});
  ++unsettled_;
  if (recent_.size() > kRecent) {
    if (!recent_.front().settled) Settle(recent_.front());
    recent_.pop_front();
  }
  unfinished_ns_.reset();
  if (detector_.open()) AddSlow(recent_.back());
  const bool was_open = detector_.open();
  switch (detector_.Take({step.type, step.start_ns, step.end_ns})) {
    case Detector::Verdict::kLearning:
    case Detector::Verdict::kClean:
      recent_.back().clean = true;
      if (habit_.Take(recent_.back().path)) StartAnew();
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
    case Detector::Verdict::kWorse:  // what is worse was taken for a part of the first one
      WriteEnded(reports_.back().incident.start_ns, detector_.recovered_ns());
      Begin();
      Update(step.end_ns, false);
      break;
  }
}

// What was learnt so far was of other steps than those to come.
void Diagnosis::Victim::StartAnew() {
  detector_ = {};
  recent_.clear();
  unsettled_ = 0;
  clean_.clear();
  clean_since_ns_ = 0;
}

void Diagnosis::Victim::Remember(const Accounted& accounted) {
  std::deque<Accounted>& of_type = clean_[accounted.step.type];
  of_type.push_back(accounted);
  while (
      of_type.size() > kMostCleanOfType ||
      (of_type.size() > kLeastCleanOfType && of_type.front().step.end_ns < accounted.step.end_ns - kCleanNs))
    of_type.pop_front();
  if (clean_since_ns_ == 0) clean_since_ns_ = accounted.step.start_ns;
}

void Diagnosis::Victim::AddSlow(Accounted& accounted) {
  accounted.slow = true;
  slow_.Add(accounted.path, 1);
  idle_ns_ = std::max(idle_ns_, IdleOf(accounted.path));
  ++slow_types_[accounted.step.type];
}

void Diagnosis::Victim::RemoveSlow(Accounted& accounted) {
  accounted.slow = false;
  slow_.Add(accounted.path, -1);
  --slow_types_[accounted.step.type];
}

// Draws up the account of every step that ended by then for the last time.
void Diagnosis::Victim::Settle(int64_t until_ns) {
  while (unsettled_ > 0) {
    Accounted& oldest = recent_[recent_.size() - unsettled_];
    if (oldest.step.end_ns > until_ns) break;
    Settle(oldest);
  }
}

void Diagnosis::Victim::Settle(Accounted& accounted) {
  const bool was_slow = accounted.slow;
  if (was_slow) RemoveSlow(accounted);
  accounted.path = AccountOf(accounted.from_ns, accounted.step.end_ns);
  if (habit_.waits()) accounted.path.TakeIdle();
  accounted.settled = true;
  --unsettled_;
  if (was_slow) AddSlow(accounted);
  if (accounted.clean) Remember(accounted);
}

void Diagnosis::Victim::LookAtUnfinished(int64_t now_ns) {
  if (habit_.waits()) return;  // nobody may have asked for anything
  const std::optional<int64_t> since_ns = finder_.unfinished_since_ns();
  if (!since_ns.has_value()) return;
  const bool was_open = detector_.open();
  if (detector_.Overrun(*since_ns, now_ns) != Detector::Verdict::kSlow) return;
  // Within an incident slow steps finish; only one that is long by itself is looked at before it does.
  if (was_open && !unfinished_ns_.has_value() && now_ns - *since_ns < kNanosPerSecond) return;
  unfinished_ns_ = now_ns - *since_ns;
  unfinished_ = AccountOf(*since_ns, now_ns);
  if (!was_open) Begin();
  if (!was_open || IsUpdateDue(now_ns)) Update(now_ns, true);
}

model::Incident Diagnosis::Victim::NewIncident() const {
  // Rows that came in another order may have been another step's.
  constexpr int64_t kAboutNs = 2 * kNanosPerSecond;
  const int64_t onset_ns = detector_.onset_ns();
  for (const model::Incident& said : said_before_) {
    if (std::abs(said.start_ns - onset_ns) > kAboutNs) continue;
    model::Incident again = said;
    again.end_ns.reset();
    return again;
  }
  model::Incident incident{.process = process_, .start_ns = onset_ns, .seen_ns = now_ns_};
  incident.incident = IdHasher("incident").Add(process_).Add(static_cast<uint64_t>(onset_ns)).Finish();
  return incident;
}

void Diagnosis::Victim::Begin() {
  // What was taken for clean since the onset wasn't.
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
  if (clean_.empty()) Settle(detector_.onset_ns());  // a short baseline, or there were none to compare with
  const int64_t over_ns = reports_.empty() ? 0 : reports_.back().incident.end_ns.value_or(0);
  const int64_t calm_since_ns = std::max(clean_since_ns_, over_ns);
  if (calm_.end_ns == 0 || detector_.onset_ns() - calm_since_ns >= kLeastCalmNs)
    calm_ = {calm_since_ns, detector_.onset_ns()};
  reports_.push_back({.incident = NewIncident(), .anchor = finder_.anchor().value_or("")});
  if (reports_.size() > kMostReports) reports_.erase(reports_.begin());
}

bool Diagnosis::Victim::IsUpdateDue(int64_t now_ns) const {
  const bool explained = reports_.back().incident.cause != kAbstain;
  const bool young = now_ns - detector_.onset_ns() < kYoungNs;
  return now_ns - updated_ns_ >= (young && !explained ? kYoungUpdateNs : kUpdateNs);
}

void Diagnosis::Victim::Update(int64_t now_ns, bool unfinished) {
  updated_ns_ = now_ns;
  WriteReport(Describe(detector_.onset_ns(),
                       unfinished ? now_ns : std::min(now_ns, detector_.slow_until_ns()), unfinished));
}

void Diagnosis::Victim::Close() {
  WriteEnded(detector_.onset_ns(), detector_.recovered_ns());
  recent_.clear();
}

void Diagnosis::Victim::WriteEnded(int64_t onset_ns, int64_t end_ns) {
  Settle(INT64_MAX);
  reports_.back().incident.end_ns = end_ns;
  WriteReport(Describe(onset_ns, end_ns, false));
}

// Of the incident until then: later steps were taken for a part of it, but are the calm after it, or may be.
Situation Diagnosis::Victim::Describe(int64_t onset_ns, int64_t until_ns, bool unfinished) const {
  Situation situation{.onset_ns = onset_ns, .slowdown = detector_.slowdown()};
  situation.unfinished = unfinished;
  situation.silent_ns = std::max<int64_t>(until_ns - std::max(finder_.last_work_ns(), heard_since_ns_), 0);
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
  during.states.DropNegative();  // sums of which parts were taken off again
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
    // Of a type that nobody knows yet: as the one before it.
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
  const auto by_party = [&](const std::map<Id128, double>& by_process, Shares& parties) {
    for (const auto& [who, ns] : by_process)
      AddShare(parties, shared_.parties.PartyOf(who, program_.family), each * ns);
  };
  by_party(before.behind, situation.cpu_before);
  by_party(during.behind, situation.cpu_during);
  DescribeRanks(before, during, each, situation);
  DescribeSignals({.process = process_,
                   .program = program_,
                   .devices = devices_,
                   .host = shared_.host,
                   .parties = shared_.parties,
                   .calm = {std::max(calm_.start_ns, calm_.end_ns - kBeforeNs), calm_.end_ns},
                   .incident = {onset_ns, std::max(until_ns, onset_ns + 1)}},
                  situation);
  return situation;
}

// Whom it waited for, of the ranks of its job, and what is said of those.
void Diagnosis::Victim::DescribeRanks(const PathAccount& before, const PathAccount& during, double each,
                                      Situation& situation) const {
  const auto by_party = [&](const std::map<Id128, double>& by_process, Shares& parties) {
    for (const auto& [who, ns] : by_process)
      AddShare(parties, shared_.parties.PartyOf(who, program_.family), each * ns);
  };
  for (const auto& [who, rank] : during.ranks) {
    const model::Process* row = shared_.parties.Find(who);
    RankPart part{
        .name = row == nullptr ? "another process" : fmt::format("{} (process {})", row->name, row->pid),
        .during = rank.states,
        .idle_during = each * rank.idle};
    part.during *= each;
    by_party(rank.behind, part.cpu_during);
    if (const auto was = before.ranks.find(who); was != before.ranks.end()) {
      part.before = was->second.states;
      part.before *= each;
      part.idle_before = each * was->second.idle;
      by_party(was->second.behind, part.cpu_before);
    }
    if (const auto told = shared_.told.find(who);
        told != shared_.told.end() && told->second.end_ns.value_or(INT64_MAX) > situation.onset_ns) {
      part.cause = told->second.cause;
      part.because = told->second.because;
    }
    situation.ranks.push_back(std::move(part));
  }
}

void Diagnosis::Victim::WriteReport(const Situation& situation) {
  Report& report = reports_.back();
  const std::string cause_before = report.incident.cause;
  const bool ended = report.incident.end_ns.has_value();
  const model::Process* row = shared_.parties.Find(process_);
  report.process_name = row == nullptr ? "" : row->name;
  report.pid = row == nullptr ? 0 : row->pid;
  report.causes = Rank(situation);
  report.incident.slowdown = situation.slowdown;
  Explain(situation, report);
  if (report.incident.cause != cause_before)
    report.incident.named_ns = report.incident.cause == kAbstain ? std::nullopt : std::optional(now_ns_);
  shared_.told[process_] = {.cause = report.incident.cause,
                            .because = report.causes.empty() ? "" : report.causes.front().finding.sentence,
                            .start_ns = report.incident.start_ns,
                            .end_ns = report.incident.end_ns};
  shared_.incidents.Append(report.incident);
  for (const model::Evidence& evidence : report.evidence) shared_.evidence.Append(evidence);
  for (const model::Warning& warning : shared_.forewarner.Take(report.incident, devices_))
    shared_.warnings.Append(warning);
  if (ended || report.incident.cause != cause_before) tell_(report);
}

}  // namespace gpusonde::diagnose
