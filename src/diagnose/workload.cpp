// SPDX-License-Identifier: Apache-2.0
#include "diagnose/workload.h"

#include <algorithm>
#include <utility>

#include "diagnose/causes/weights.h"
#include "diagnose/explain.h"
#include "diagnose/incident_table.h"
#include "diagnose/rank.h"

namespace gpusonde::diagnose {

std::vector<model::Batch> Diagnosis::Shared::DrainRows() {
  std::vector<model::Batch> batches;
  const auto drain = [&](auto& builder) {
    if (builder.rows() > 0) batches.push_back(builder.Take());
  };
  drain(steps);
  drain(incidents);
  drain(evidence);
  drain(warnings);
  drain(usual_steps);
  return batches;
}

void Diagnosis::Shared::Emit(const Report& report, double step_ns, const std::set<Id128>& devices) {
  last_reports[report.incident.process] = {
      .cause = FindCause(report.incident.cause),
      .because = report.causes.empty() ? "" : report.causes.front().finding.sentence,
      .onset_ns = report.incident.start_ns,
      .step_ns = step_ns,
      .end_ns = report.incident.end_ns};
  if (!report.is_notable) return;
  incidents.Append(report.incident);
  for (const model::Evidence& each : report.evidence) evidence.Append(each);
  for (const model::Warning& warning : forewarner.Ingest(report.incident, devices)) warnings.Append(warning);
}

Diagnosis::Workload::Workload(const Id128& process, Shared& shared, const Options& options)
    : process_(process),
      shared_(shared),
      options_(options),
      accounting_(process, shared.host, shared.actors, baseline_),
      incidents_(process, 0) {}

Diagnosis::Workload::Workload(const Workload& first, int32_t tid)
    : process_(first.process_),
      tid_(tid),
      shared_(first.shared_),
      options_(first.options_),
      accounting_(process_, shared_.host, shared_.actors, baseline_),
      incidents_(process_, tid),
      observation_(first.observation_),
      signals_known_(first.signals_known_) {
  accounting_.CountThread(tid, first.now_ns_);
}

bool Diagnosis::Workload::is_slow() const {
  return detector_.open() && !reports().empty() && ExitedNs() == INT64_MAX;
}

void Diagnosis::Workload::Ingest(const Work& work, std::span<const WorkTime> times, const Id128& device) {
  if (!device.IsZero()) devices_.insert(device);
  gpu_time_.Ingest(work, times);
  accounting_.Ingest(work.kind, times);
  finder_.Ingest(work, times);
}

// A session's row arrives when it begins and again when it ends; a recording keeps only the last one. A
// session that another agent kept going while none of ours ran is joined again, later than it was last
// observed.
bool Diagnosis::Workload::Ingest(const model::GpuSession& session) {
  const bool joined_again =
      session.session == observation_.session && session.start_ns > observation_.session_end_ns;
  const bool begins = (session.session > observation_.session || joined_again) && session.start_ns > 0;
  if (begins) {
    BeginObserving(session.start_ns);
    observation_.session_end_ns = INT64_MAX;
  }
  observation_.session = std::max(observation_.session, session.session);
  if (session.end_ns.has_value()) {
    EndObserving(*session.end_ns);
    observation_.session_end_ns = *session.end_ns;
  }
  return begins;
}

void Diagnosis::Workload::MarkUnobserved(int64_t from_ns, int64_t to_ns) {
  EndObserving(from_ns);
  BeginObserving(to_ns);
}

void Diagnosis::Workload::Advance(int64_t now_ns, int64_t watermark_ns, int64_t allowed_lateness_ns) {
  now_ns_ = now_ns;
  if (ended_ns_.has_value()) return;
  gpu_time_.ForgetBefore(now_ns - kRetentionNs);
  ProcessUntil(watermark_ns);
  accounting_.CompleteUntil(now_ns - allowed_lateness_ns);
  if (!detector_.open() && now_ns - compared_ns_ >= kNanosPerSecond) EndLastingDisturbance();
  if (now_ns - judged_ns_ >= kIncidentTable.clean.kept_ns) JudgeUsual();
  if (const int64_t exited_ns = ExitedNs(); exited_ns < now_ns - allowed_lateness_ns) EndAt(exited_ns);
}

int64_t Diagnosis::Workload::ExitedNs() const {
  const model::Process* row = shared_.actors.Find(process_);
  return row == nullptr ? INT64_MAX : row->exited_ns.value_or(INT64_MAX);
}

// An open incident ends with its program.
void Diagnosis::Workload::EndAt(int64_t time_ns) {
  ended_ns_ = time_ns;
  EndObserving(time_ns);
  ProcessToEnd(now_ns_);
  accounting_.CompleteUntil(INT64_MAX);
  Emit(Usual());
  if (detector_.open()) Explain(detector_.onset_ns(), time_ns, time_ns);
}

void Diagnosis::Workload::ProcessUntil(int64_t time_ns) {
  accounting_.UpdateProgram(shared_.launch_threads);
  if (tid_ == 0) shared_.launch_threads[process_] = accounting_.usual_launch_thread();
  signals_known_ |= shared_.host.Knows(process_);
  std::ranges::sort(observation_.changes);
  while (!observation_.changes.empty() && observation_.changes.front().time_ns < time_ns) {
    const int64_t change_ns = observation_.changes.front().time_ns + 1;  // include work that ended right then
    for (const StepSpan& step : finder_.Advance(change_ns)) AddStep(step);
    observation_.now = observation_.changes.front().begins;
    for (const StepSpan& step : finder_.Gap(change_ns, observation_.now)) AddStep(step);
    if (observation_.now) observation_.since_ns = change_ns;
    observation_.changes.pop_front();
  }
  for (const StepSpan& step : finder_.Advance(time_ns)) AddStep(step);
  if (observation_.now) CheckUnfinished(time_ns);
  accounting_.ForgetGpuWorkBefore(finder_.needed_since_ns().value_or(time_ns));
}

void Diagnosis::Workload::ProcessToEnd(int64_t time_ns) {
  ProcessUntil(time_ns);
  for (const StepSpan& step : finder_.Finish()) AddStep(step);
}

void Diagnosis::Workload::Finish(int64_t time_ns) {
  if (ended_ns_.has_value()) return;
  now_ns_ = time_ns;
  if (const int64_t exited_ns = ExitedNs(); exited_ns <= time_ns) {
    EndAt(exited_ns);
    return;
  }
  EndObserving(time_ns - 1);  // the unfinished step ends with the program
  ProcessToEnd(time_ns);
  accounting_.CompleteUntil(time_ns);
  Emit(Usual());
  if (detector_.open()) UpdateIncident(time_ns);
}

void Diagnosis::Workload::Abandon(int64_t time_ns) {
  if (ended_ns_.has_value()) return;
  now_ns_ = time_ns;
  EndAt(std::min(time_ns, ExitedNs()));
}

void Diagnosis::Workload::AddStep(const StepSpan& span) {
  // A cut step's length is unknown, unless its observed part already overran.
  if (span.cut && !(unfinished_.has_value() && detector_.open())) return;
  const bool was_open = detector_.open();
  const StepSpan step = accounting_.Add(span, was_open).step;
  shared_.steps.Append({.process = process_,
                        .tid = tid_,
                        .type = step.type,
                        .ordinal = steps_++,
                        .start_ns = step.start_ns,
                        .end_ns = step.end_ns});
  unfinished_.reset();
  if (IsBeforeSignals(step)) return;
  switch (detector_.Ingest({.type = step.type,
                            .start_ns = step.start_ns,
                            .end_ns = step.end_ns,
                            .work = step.work,
                            .gpu_error = HasGpuError({step.start_ns, step.end_ns})})) {
    case Detector::Verdict::kLearning:
    case Detector::Verdict::kClean:
      if (accounting_.MarkClean()) Restart();
      break;
    case Detector::Verdict::kSuspect:
      if (accounting_.MarkSuspect()) Restart();
      break;
    case Detector::Verdict::kSlow:
      if (!was_open) BeginIncident();
      if (!was_open || incidents_.IsUpdateDue(step.end_ns)) UpdateIncident(step.end_ns);
      break;
    case Detector::Verdict::kClosed:
      EndIncident(detector_.onset_ns(), detector_.recovered_ns());
      accounting_.Clear();
      break;
    case Detector::Verdict::kLarge:
      Split(detector_.worse_since_ns(), detector_.worse_since_ns());
      UpdateIncident(step.end_ns);
      break;
    case Detector::Verdict::kLateOnset: {
      const bool moves = !reports().back().is_notable;
      if (moves) MoveOnset(detector_.worse_since_ns());
      if (moves || incidents_.IsUpdateDue(step.end_ns)) UpdateIncident(step.end_ns);
      break;
    }
    case Detector::Verdict::kWorse:
      if (!incidents_.IsUpdateDue(step.end_ns)) break;
      if (HasAnotherCause(detector_.worse_since_ns(), step.end_ns))
        Split(detector_.worse_since_ns(), detector_.worse_since_ns());
      UpdateIncident(step.end_ns);
      break;
  }
  if (!detector_.open()) kinds_.Add(step);
}

// Host signals are loaded when a program first uses a GPU. What slows a step before that isn't observed, and
// may be the agent itself, which loads the eBPF programs and reads the program's files. Such a step is no
// evidence. If no signals arrive, steps count after some seconds.
bool Diagnosis::Workload::IsBeforeSignals(const StepSpan& step) {
  if (!options_.awaits_signals) return false;
  if (first_step_ns_ == 0) first_step_ns_ = step.start_ns;
  if (step.end_ns - first_step_ns_ >= kIncidentTable.awaited_ns) return false;
  return !shared_.host.KnownSince(process_, accounting_.usual_launch_thread())
              .transform([&](int64_t since_ns) { return since_ns <= step.start_ns; })
              .value_or(false);
}

bool Diagnosis::Workload::HasGpuError(const TimeRange& when) const {
  return std::ranges::any_of(devices_,
                             [&](const Id128& device) { return !shared_.host.XidsOf(device, when).empty(); });
}

// Discards the baseline, because steps exclude waits for requests from now on, or include them again.
void Diagnosis::Workload::Restart() {
  detector_ = {};
  accounting_.Clear();
  baseline_.Clear();
  disturbed_since_ns_.reset();
}

// If a program was disturbed from its beginning, or from when it was first observed, its disturbed steps were
// learned as clean ones, and the next disturbance would seem no slower than usual. So when such a disturbance
// ends, its steps are forgotten, and it becomes an incident that is compared with the time after it. Only
// with a likely cause: that steps have become shorter is no news by itself.
void Diagnosis::Workload::EndLastingDisturbance() {
  compared_ns_ = now_ns_;
  const auto shortened = baseline_.FindShortened();
  if (!shortened.has_value()) return;
  const int64_t end_ns = shortened->since_ns;
  const int64_t onset_ns =
      std::max(disturbed_since_ns_.value_or(baseline_.RecentSince()), incidents_.last_end_ns());
  CleanBaseline later = baseline_;
  later.ForgetBefore(end_ns);
  later.SetCalm({end_ns, now_ns_});
  const Situation situation = BuildSituation({.tid = tid_,
                                              .onset_ns = onset_ns,
                                              .until_ns = end_ns,
                                              .slow = baseline_.SumBefore(end_ns),
                                              .last_work_ns = end_ns,
                                              .signals_known = signals_known_,
                                              .before_is_later = true},
                                             Context(later));
  const Explanation explanation = diagnose::Explain(situation, Rank(situation), onset_ns);
  const bool likely = explanation.cause.has_value() && explanation.confidence >= kIncidentTable.report.likely;
  const bool by_gpu =
      likely && (*explanation.cause == CauseId::kGpuNeighbour || *explanation.cause == CauseId::kGpuClocks);
  if (!shortened->disturbed && !by_gpu) return;
  baseline_ = std::move(later);
  detector_.ForgetBefore(end_ns);
  disturbed_since_ns_.reset();
  if (!likely || onset_ns >= end_ns || incidents_.WasReported({onset_ns, end_ns})) return;
  incidents_.Begin(onset_ns, now_ns_, anchor());
  Publish(situation, end_ns);
}

UsualStep Diagnosis::Workload::Usual() const { return UsualStepOf(Context()); }

// Called as often as clean steps are forgotten, so that the steps of a lasting disturbance are seen before.
void Diagnosis::Workload::JudgeUsual() {
  const UsualStep usual = Usual();
  if (usual.steps == 0) return;
  judged_ns_ = now_ns_;
  if (usual.disturbances.empty())
    disturbed_since_ns_.reset();
  else if (!disturbed_since_ns_.has_value())
    disturbed_since_ns_ = baseline_.RecentSince();
  if (now_ns_ - usual_ns_ >= kIncidentTable.report.usual_ns) Emit(usual);
}

// Writes a row for every state, as it replaces the earlier row of that state.
void Diagnosis::Workload::Emit(const UsualStep& usual) {
  if (usual.steps == 0) return;
  usual_ns_ = now_ns_;
  shared_.usual_steps.Append({.process = process_,
                              .tid = tid_,
                              .state = std::string(model::kBetweenSteps),
                              .time_ns = usual.between.total(),
                              .steps = usual.steps,
                              .sentence = ""});
  for (size_t i = 0; i < kStates; ++i) {
    const auto state = static_cast<State>(i);
    std::string sentence;
    for (const LastingDisturbance& each : usual.disturbances)
      if (each.state == state) sentence += (sentence.empty() ? "" : " ") + each.sentence;
    shared_.usual_steps.Append({.process = process_,
                                .tid = tid_,
                                .state = std::string(model::InfoOf(MetricOf(state)).name),
                                .time_ns = usual.states[state],
                                .steps = usual.steps,
                                .sentence = std::move(sentence)});
  }
}

void Diagnosis::Workload::CheckUnfinished(int64_t now_ns) {
  if (waits_by_habit()) return;  // there may be no request
  const std::optional<int64_t> since_ns = finder_.unfinished_since_ns();
  if (!since_ns.has_value()) return;
  const bool was_open = detector_.open();
  if (detector_.Overrun(*since_ns, now_ns) != Detector::Verdict::kSlow) return;
  // Within an incident, slow steps do finish: only report an unfinished one after a second.
  if (was_open && !unfinished_.has_value() && now_ns - *since_ns < kNanosPerSecond) return;
  if (was_open && Hangs(*since_ns, now_ns)) SplitHang(*since_ns, now_ns);
  unfinished_ = {.path = accounting_.AccountUnfinished(*since_ns, now_ns), .type = accounting_.last_type()};
  if (!was_open) BeginIncident();
  if (!was_open || incidents_.IsUpdateDue(now_ns)) UpdateIncident(now_ns);
}

// Whether the step that began within the open incident hangs: it takes far longer than any, and no GPU work
// has come for as long as that takes.
bool Diagnosis::Workload::Hangs(int64_t since_ns, int64_t now_ns) const {
  return since_ns > detector_.onset_ns() && detector_.Overruns(since_ns, now_ns) &&
         now_ns - std::max(finder_.last_work_ns(), observation_.since_ns) >= kHungNs;
}

// What slowed steps before is no part of a hang: it is an incident of its own, which begins with its step.
void Diagnosis::Workload::SplitHang(int64_t since_ns, int64_t now_ns) {
  if (reports().back().incident.cause == NameOf(CauseId::kHang)) return;
  unfinished_.reset();
  accounting_.CompleteUntil(since_ns);
  Explain(detector_.onset_ns(), since_ns, since_ns);
  detector_.SplitOverrun(since_ns, now_ns);
  BeginIncident();
}

void Diagnosis::Workload::BeginIncident() {
  const int64_t onset_ns = detector_.onset_ns();
  baseline_.DropAfter(onset_ns);
  accounting_.BeginSlow(onset_ns);
  // The baseline may be so short that none of its accounts is complete yet.
  if (baseline_.empty()) accounting_.CompleteUntil(onset_ns);
  baseline_.SetCalm(onset_ns, incidents_.last_end_ns());
  incidents_.Begin(onset_ns, now_ns_, anchor());
}

void Diagnosis::Workload::UpdateIncident(int64_t time_ns) {
  incidents_.MarkUpdated(time_ns);
  int64_t until_ns = time_ns;
  if (!unfinished_.has_value()) {
    until_ns = KnownUntil(time_ns);
    SplitIfReplaced(until_ns);
  }
  Explain(detector_.onset_ns(), until_ns, std::nullopt);
}

// Returns until when the incident can be explained. Steps after the last slow one may belong to the recovery,
// and steps whose signals haven't arrived yet would look unexplained.
int64_t Diagnosis::Workload::KnownUntil(int64_t time_ns) {
  const int64_t until_ns = std::min(time_ns, detector_.slow_until_ns());
  const int64_t known_ns = accounting_.RefreshKnown();
  return known_ns > detector_.onset_ns() ? std::min(until_ns, known_ns) : until_ns;
}

// Splits the incident if another disturbance has replaced the first. Explained together, each would have only
// half of the evidence.
void Diagnosis::Workload::SplitIfReplaced(int64_t until_ns) {
  const auto& table = kIncidentTable.replaced;
  const int64_t onset_ns = detector_.onset_ns();
  if (const std::optional<TimeRange> pause = detector_.LastPause(); pause.has_value()) {
    if (pause->from_ns - onset_ns >= table.ns && until_ns - pause->to_ns >= table.after_pause_ns &&
        ReplacementOf({onset_ns, pause->from_ns}, {pause->to_ns, until_ns}).has_value())
      Split(pause->from_ns, pause->to_ns);
    return;
  }
  const int64_t since_ns = std::min(until_ns - table.ns, accounting_.StartOfLastSlow(table.steps, until_ns));
  if (since_ns - onset_ns < table.ns) return;
  const std::optional<Replacement> causes = ReplacementOf({onset_ns, since_ns}, {since_ns, until_ns});
  if (!causes.has_value()) return;
  // A tenth of what the second part lost may be a second of the first one. Incidents that begin within two
  // seconds are the same after a restart.
  const int64_t from_ns = std::max(onset_ns + table.ns, since_ns - (until_ns - since_ns));
  const int64_t change_ns =
      accounting_.ChangeBetween(causes->first->states, causes->second->states, {from_ns, until_ns})
          .value_or(since_ns);
  Split(change_ns, change_ns);
}

// Ends the open incident, and begins another one.
void Diagnosis::Workload::Split(int64_t end_ns, int64_t onset_ns) {
  accounting_.CompleteUntil(end_ns);
  Explain(detector_.onset_ns(), end_ns, end_ns);
  detector_.Split(end_ns, onset_ns);
  BeginIncident();
}

// The open incident, which nobody has seen yet, began later than it seemed. With steps before it that were
// slow by chance it would be small for longer, and be seen later.
void Diagnosis::Workload::MoveOnset(int64_t onset_ns) {
  incidents_.Discard();
  detector_.MoveOnset(onset_ns);
  BeginIncident();
}

void Diagnosis::Workload::EndIncident(int64_t onset_ns, int64_t end_ns) {
  accounting_.CompleteUntil(INT64_MAX);
  Explain(onset_ns, end_ns, end_ns);
}

SituationContext Diagnosis::Workload::Context(const CleanBaseline& baseline) const {
  return {.program = accounting_.program(),
          .devices = devices_,
          .baseline = baseline,
          .host = shared_.host,
          .actors = shared_.actors,
          .last_reports = shared_.last_reports,
          .gpu_time = gpu_time_};
}

Situation Diagnosis::Workload::SituationOf(int64_t onset_ns, int64_t until_ns, StepSum slow) const {
  return BuildSituation({.tid = tid_,
                         .onset_ns = onset_ns,
                         .until_ns = until_ns,
                         .slow = std::move(slow),
                         .unfinished = unfinished_,
                         .slowdown = detector_.slowdown(),
                         .last_work_ns = std::max(finder_.last_work_ns(), observation_.since_ns),
                         .signals_known = signals_known_},
                        Context());
}

// Returns the causes of two parts of the open incident if each part has a likely cause that explains hardly
// anything of the other part.
std::optional<Diagnosis::Workload::Replacement> Diagnosis::Workload::ReplacementOf(
    const TimeRange& first, const TimeRange& second) const {
  const auto& table = kIncidentTable.replaced;
  const Situation late =
      SituationOf(second.from_ns, second.to_ns, accounting_.SlowWithin(second.from_ns, second.to_ns));
  const std::vector<Candidate> now = Rank(late);
  if (now.empty() || now.front().confidence < table.likely || late.steps < table.steps ||
      late.slowdown < table.slowdown)
    return std::nullopt;
  const Situation early = SituationOf(first.from_ns, first.to_ns, accounting_.SlowUntil(first.to_ns));
  const std::vector<Candidate> before = Rank(early);
  if (before.empty() || before.front().confidence < table.likely || early.steps < table.steps ||
      late.slowdown - 1 < table.excess * (early.slowdown - 1))
    return std::nullopt;
  // Ranks that one disturbance slows take turns in coming last.
  const auto is_root = [](const Candidate& cause, const Candidate& other) {
    return other.finding.root == cause.cause->id;
  };
  const auto explains = [&](const std::vector<Candidate>& ranked, const Candidate& cause) {
    return std::ranges::any_of(ranked, [&](const Candidate& each) {
      return each.share > table.left && each.confidence >= kWeights.ranking.min_confidence &&
             (each.cause == cause.cause || is_root(each, cause) || is_root(cause, each));
    });
  };
  if (explains(before, now.front()) || explains(now, before.front())) return std::nullopt;
  return Replacement{.first = before.front().cause, .second = now.front().cause};
}

// Whether the steps since `onset_ns`, which are much slower than the open incident was before, have another
// cause. With the same cause or none they belong to the same disturbance, and so they do while the incident
// is young, as a disturbance may build up.
bool Diagnosis::Workload::HasAnotherCause(int64_t onset_ns, int64_t until_ns) const {
  const model::Incident& open = reports().back().incident;
  if (onset_ns - open.start_ns < kIncidentTable.report.young_ns) return false;
  const Situation worse = SituationOf(onset_ns, until_ns, accounting_.SlowWithin(onset_ns, INT64_MAX));
  const std::optional<CauseId> cause = diagnose::Explain(worse, Rank(worse), onset_ns).cause;
  return cause.has_value() && NameOf(*cause) != open.cause;
}

void Diagnosis::Workload::Explain(int64_t onset_ns, int64_t until_ns, std::optional<int64_t> end_ns) {
  Publish(SituationOf(onset_ns, until_ns, accounting_.SlowUntil(until_ns)), end_ns);
}

void Diagnosis::Workload::Publish(const Situation& situation, std::optional<int64_t> end_ns) {
  const bool is_news = incidents_.Explain(situation, shared_.actors.Find(process_), end_ns, now_ns_);
  shared_.Emit(reports().back(), situation.during.total(), devices_);
  options_.explained(situation, reports().back());
  if (is_news) options_.report(reports().back());
}

}  // namespace gpusonde::diagnose
