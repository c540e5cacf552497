// SPDX-License-Identifier: Apache-2.0
#include "diagnose/victim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "diagnose/explain.h"

namespace gpusonde::diagnose {
namespace {

using model::Metric;

constexpr size_t kCleanOfType = 32;
constexpr size_t kRecent = 400;
// An open incident is explained anew so often.
constexpr int64_t kUpdateNs = kNanosPerSecond / 2;
// What is compared with: so much time before the onset.
constexpr int64_t kBeforeNs = 60 * kNanosPerSecond;

}  // namespace

std::vector<model::Batch> Diagnosis::Shared::TakeRows() {
  std::vector<model::Batch> batches;
  const auto take = [&](auto& builder) {
    if (builder.rows() > 0) batches.push_back(builder.Take());
  };
  take(steps);
  take(incidents);
  take(evidence);
  return batches;
}

Diagnosis::Victim::Victim(const Id128& process, Shared& shared, std::function<void(const Report&)> tell)
    : process_(process), shared_(shared), tell_(std::move(tell)) {
  program_.process = process;
}

void Diagnosis::Victim::Take(Work work, std::optional<Id128> device) {
  if (device.has_value() && !device->IsZero()) devices_.insert(*device);
  const Interval interval = work.kind == Work::Kind::kSync
                                ? Interval{work.time_ns - work.length_ns, work.time_ns}
                                : Interval{work.time_ns, work.time_ns + work.length_ns};
  if (work.kind == Work::Kind::kKernel) gpu_.kernels.push_back(interval);
  if (work.kind == Work::Kind::kCopy) gpu_.copies.push_back(interval);
  if (work.kind == Work::Kind::kSync) gpu_.syncs.push_back(interval);
  finder_.Take(std::move(work));
}

// A session's row comes when it begins, and again when it ends; in a recording only the last one lies.
void Diagnosis::Victim::Take(const model::GpuSession& session) {
  if (session.session > session_ && session.start_ns > 0) Hear(session.start_ns, true);
  session_ = std::max(session_, session.session);
  if (session.end_ns.has_value()) Hear(*session.end_ns, false);
}

void Diagnosis::Victim::Advance(int64_t time_ns) {
  // The program's own threads are told apart from others by who descends from it.
  program_.family = shared_.parties.FamilyOf(process_);
  program_.feeder = Feeder();
  signals_known_ |= shared_.host.Knows(process_);
  for (std::vector<Interval>* intervals : {&gpu_.kernels, &gpu_.copies, &gpu_.syncs})
    std::ranges::sort(*intervals, {}, &Interval::start_ns);
  std::ranges::sort(hearing_);
  while (!hearing_.empty() && hearing_.front().first < time_ns) {
    const int64_t change_ns = hearing_.front().first + 1;  // what came then belongs to before
    for (const StepSpan& step : finder_.Advance(change_ns)) TakeStep(step);
    finder_.Gap(change_ns);
    heard_ = hearing_.front().second;
    hearing_.pop_front();
  }
  for (const StepSpan& step : finder_.Advance(time_ns)) TakeStep(step);
  if (heard_) LookAtUnfinished(time_ns);
  const int64_t needed_ns = finder_.unfinished_since_ns().value_or(time_ns);
  for (std::vector<Interval>* intervals : {&gpu_.kernels, &gpu_.copies, &gpu_.syncs})
    std::erase_if(*intervals, [&](const Interval& interval) { return interval.end_ns <= needed_ns; });
}

void Diagnosis::Victim::Finish(int64_t time_ns) {
  Hear(time_ns - 1, false);  // an unfinished step ends with its program
  Advance(time_ns);
  if (detector_.open()) Update(time_ns, unfinished_ns_.has_value());
}

// The thread that was seen most to put work on the GPU, or to say what it does; else the first one.
int32_t Diagnosis::Victim::Feeder() const {
  const auto most = std::ranges::max_element(threads_, {}, [](const auto& thread) { return thread.second; });
  if (most != threads_.end()) return most->first;
  const model::Process* row = shared_.parties.Find(process_);
  return row == nullptr ? 0 : row->pid;
}

PathAccount Diagnosis::Victim::AccountOf(int64_t from_ns, int64_t to_ns) {
  return AccountFor(program_, shared_.host, gpu_, from_ns, to_ns);
}

void Diagnosis::Victim::TakeStep(const StepSpan& step) {
  shared_.steps.Append({.process = process_,
                        .type = step.type,
                        .ordinal = ordinal_++,
                        .start_ns = step.start_ns,
                        .end_ns = step.end_ns});
  const Accounted accounted{step, AccountOf(step.start_ns, step.end_ns)};
  recent_.push_back(accounted);
  if (recent_.size() > kRecent) recent_.pop_front();
  unfinished_ns_.reset();
  if (detector_.open()) AddSlow(accounted);
  const bool was_open = detector_.open();
  switch (detector_.Take({step.type, step.start_ns, step.end_ns})) {
    case Detector::Verdict::kLearning:
    case Detector::Verdict::kClean:
      Remember(accounted);
      break;
    case Detector::Verdict::kSuspect:
      break;
    case Detector::Verdict::kSlow:
      if (!was_open) Begin();
      if (!was_open || step.end_ns - updated_ns_ >= kUpdateNs) Update(step.end_ns, false);
      break;
    case Detector::Verdict::kClosed:
      Close();
      break;
    case Detector::Verdict::kWorse:  // what was said of the first one stands
      reports_.back().incident.end_ns = detector_.recovered_ns();
      shared_.incidents.Append(reports_.back().incident);
      tell_(reports_.back());
      Begin();
      Update(step.end_ns, false);
      break;
  }
}

void Diagnosis::Victim::Remember(const Accounted& accounted) {
  std::deque<Accounted>& of_type = clean_[accounted.step.type];
  of_type.push_back(accounted);
  if (of_type.size() > kCleanOfType) of_type.pop_front();
  if (clean_since_ns_ == 0) clean_since_ns_ = accounted.step.start_ns;
}

void Diagnosis::Victim::AddSlow(const Accounted& accounted, int sign) {
  Account part = accounted.path.states;
  slow_.states += part *= sign;
  for (const auto& [who, ns] : accounted.path.behind) slow_.behind[who] += sign * ns;
  slow_types_[accounted.step.type] += sign;
}

void Diagnosis::Victim::LookAtUnfinished(int64_t now_ns) {
  const std::optional<int64_t> since_ns = finder_.unfinished_since_ns();
  if (!since_ns.has_value()) return;
  const bool was_open = detector_.open();
  if (detector_.Overrun(*since_ns, now_ns) != Detector::Verdict::kSlow) return;
  // Within an incident slow steps finish; only one that is long by itself is looked at before it does.
  if (was_open && !unfinished_ns_.has_value() && now_ns - *since_ns < kNanosPerSecond) return;
  unfinished_ns_ = now_ns - *since_ns;
  unfinished_ = AccountOf(*since_ns, now_ns);
  if (!was_open) Begin();
  if (!was_open || now_ns - updated_ns_ >= kUpdateNs) Update(now_ns, true);
}

void Diagnosis::Victim::Begin() {
  // What was taken for clean since the onset wasn't.
  for (auto& [type, accounts] : clean_)
    std::erase_if(accounts, [&](const Accounted& each) { return each.step.end_ns > detector_.onset_ns(); });
  slow_ = {};
  slow_types_.clear();
  for (const Accounted& accounted : recent_)
    if (accounted.step.start_ns >= detector_.onset_ns()) AddSlow(accounted);
  Report report;
  report.incident.process = process_;
  report.incident.start_ns = detector_.onset_ns();
  report.incident.incident =
      IdHasher("incident").Add(process_).Add(static_cast<uint64_t>(detector_.onset_ns())).Finish();
  report.anchor = finder_.anchor().value_or("");
  reports_.push_back(std::move(report));
}

void Diagnosis::Victim::Update(int64_t now_ns, bool unfinished) {
  updated_ns_ = now_ns;
  WriteReport(Describe(now_ns, unfinished));
}

// What came after the recovery was taken for a part of it until now.
void Diagnosis::Victim::Close() {
  for (const Accounted& accounted : recent_)
    if (accounted.step.start_ns >= detector_.recovered_ns()) AddSlow(accounted, -1);
  reports_.back().incident.end_ns = detector_.recovered_ns();
  WriteReport(Describe(detector_.recovered_ns(), false));
  recent_.clear();
}

Situation Diagnosis::Victim::Describe(int64_t now_ns, bool unfinished) const {
  const int64_t onset_ns = detector_.onset_ns();
  Situation situation{.onset_ns = onset_ns, .slowdown = detector_.slowdown()};
  situation.unfinished = unfinished;
  situation.silent_ns = std::max<int64_t>(now_ns - finder_.last_work_ns(), 0);
  situation.signals_known = signals_known_;
  std::map<Id128, double> behind_before, behind_during;
  int64_t steps = 0;
  const auto add_before = [&](const Id128& type, int64_t count) {
    steps += count;
    auto clean = clean_.find(type);
    if (clean == clean_.end() || clean->second.empty())
      clean = std::ranges::find_if(clean_, [](const auto& of_type) { return !of_type.second.empty(); });
    if (clean == clean_.end()) return;
    const double share = static_cast<double>(count) / static_cast<double>(clean->second.size());
    for (const Accounted& accounted : clean->second) {
      Account part = accounted.path.states;
      situation.before += part *= share;
      for (const auto& [who, ns] : accounted.path.behind) behind_before[who] += share * ns;
    }
  };
  situation.during = slow_.states;
  behind_during = slow_.behind;
  for (const auto& [type, count] : slow_types_) add_before(type, count);
  if (unfinished && unfinished_ns_.has_value()) {
    situation.during += unfinished_.states;
    for (const auto& [who, ns] : unfinished_.behind) behind_during[who] += ns;
    // Of a type that nobody knows yet: as the one before it.
    add_before(recent_.empty() ? Id128{} : recent_.back().step.type, 1);
  }
  if (situation.before.total() > 0) situation.slowdown = situation.during.total() / situation.before.total();
  const double each = 1 / static_cast<double>(std::max<int64_t>(steps, 1));
  situation.before *= each;
  situation.during *= each;
  const auto by_party = [&](const std::map<Id128, double>& by_process, std::map<Party, double>& parties) {
    for (const auto& [who, ns] : by_process)
      parties[shared_.parties.PartyOf(who, program_.family)] += each * ns;
  };
  by_party(behind_before, situation.cpu_before);
  by_party(behind_during, situation.cpu_during);
  DescribeSignals(situation, onset_ns, std::max(now_ns, onset_ns + 1));
  return situation;
}

void Diagnosis::Victim::DescribeSignals(Situation& situation, int64_t from_ns, int64_t to_ns) const {
  const int64_t before_ns = std::max(clean_since_ns_, from_ns - kBeforeNs);
  const HostTimeline& host = shared_.host;
  const auto before_s = static_cast<double>(std::max<int64_t>(from_ns - before_ns, 1)) / 1e9;
  const auto during_s = static_cast<double>(to_ns - from_ns) / 1e9;
  const auto add_share = [&](Metric metric, std::optional<Id128> process) {
    Change change{host.SumOf(metric, process, before_ns, from_ns),
                  host.SumOf(metric, process, from_ns, to_ns)};
    if (change.before.has_value()) *change.before /= before_s * 1e9;
    if (change.during.has_value()) *change.during /= during_s * 1e9;
    if (change.before.has_value() || change.during.has_value()) situation.signals[metric] = change;
  };
  for (const Metric metric :
       {Metric::kHostPressureCpu, Metric::kHostPressureIo, Metric::kHostPressureMemory, Metric::kHostSteal})
    add_share(metric, std::nullopt);
  add_share(Metric::kCgroupThrottled, process_);
  for (const auto& [process, bytes] : host.SumsByProcess(Metric::kDiskBytes, before_ns, from_ns))
    situation.disk_before[shared_.parties.PartyOf(process, program_.family)] += bytes / before_s;
  for (const auto& [process, bytes] : host.SumsByProcess(Metric::kDiskBytes, from_ns, to_ns))
    situation.disk_during[shared_.parties.PartyOf(process, program_.family)] += bytes / during_s;
  for (const Id128& device : devices_) {
    for (const Metric metric : {Metric::kGpuClockSm, Metric::kGpuTemperature, Metric::kGpuPower}) {
      const Change change{host.MeanReading(metric, device, before_ns, from_ns),
                          host.MeanReading(metric, device, from_ns, to_ns)};
      if (change.known()) situation.signals[metric] = change;
    }
    const Change reasons{
        host.MeanReading(Metric::kGpuThrottleReasons, device, before_ns, from_ns,
                         model::kSlowingThrottleBits),
        host.MeanReading(Metric::kGpuThrottleReasons, device, from_ns, to_ns, model::kSlowingThrottleBits)};
    if (reasons.known()) situation.signals[Metric::kGpuThrottleReasons] = reasons;
    for (const double code : host.EventsOf(Metric::kGpuXid, device, from_ns, to_ns))
      situation.xids.push_back(std::llround(std::clamp(code, 0.0, 1e9)));
    const auto add_neighbours = [&](int64_t begin_ns, int64_t end_ns, std::optional<double> Change::* when) {
      for (const auto& [process, share] :
           host.ReadingsByProcess(Metric::kGpuProcessUtilization, device, begin_ns, end_ns)) {
        if (program_.family.contains(process)) continue;
        const Party party = shared_.parties.PartyOf(process, program_.family);
        Change& change = situation.neighbours[NameParty(party)];
        if (!change.before.has_value()) change = {0, 0};
        *(change.*when) += share;
      }
    };
    add_neighbours(before_ns, from_ns, &Change::before);
    add_neighbours(from_ns, to_ns, &Change::during);
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
  shared_.incidents.Append(report.incident);
  for (const model::Evidence& evidence : report.evidence) shared_.evidence.Append(evidence);
  if (ended || report.incident.cause != cause_before) tell_(report);
}

}  // namespace gpusonde::diagnose
