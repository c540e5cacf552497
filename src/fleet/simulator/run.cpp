// SPDX-License-Identifier: Apache-2.0
#include "fleet/simulator/run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "fleet/privacy/gaussian.h"
#include "fleet/roles/beacon.h"
#include "fleet/roles/message.h"
#include "fleet/simulator/latency.h"
#include "fleet/simulator/parallel.h"
#include "fleet/simulator/seeds.h"
#include "fleet/unknown.h"

namespace gpusonde::fleet {
namespace {

using privacy::kReportSlots;

// Devices are processed in slices, each with randomness of its own, so that results don't depend on the
// number of threads.
constexpr size_t kSliceDevices = 500;

enum Cheating { kSpoils, kSignsWrongly, kReportsTwice };

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

double MicrosPer(int64_t ns, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(ns) / 1e3 / static_cast<double>(count);
}

}  // namespace

SimulationRun::SimulationRun(const Parameters& parameters, const ApplicationMix& mix, ReportKind kind,
                             SimulatedFleet fleet)
    : parameters_(parameters),
      mix_(mix),
      kind_(kind),
      layout_{.groups = parameters.groups,
              .pages = (parameters.applications + kApplicationsPerPage - 1) / kApplicationsPerPage,
              .cohorts = parameters.cohorts},
      fleet_(std::move(fleet)),
      world_({.load = parameters.load,
              .job_hours = parameters.job_hours,
              .zipf = parameters.zipf,
              .known = parameters.applications,
              .unknown = parameters.unknown_applications,
              .unknown_share = parameters.unknown_share},
             parameters.devices, SeededRandom(parameters.seed, "world")),
      private_catalog_(mix.catalog()),
      epoch_(kFirstEpoch),
      released_(layout_),
      truth_(layout_.places(), std::vector<uint64_t>(privacy::kReportRows)),
      sampled_(size_t{parameters.groups} * parameters.applications) {
  for (uint32_t i = 0; i < parameters.cheats; ++i)
    cheats_[static_cast<size_t>(i) * fleet_.size() / parameters.cheats] = static_cast<int>(i % 3);
  run_.kind = kind;
  run_.report_bytes = ReportBytes(kind);
}

Status SimulationRun::Churn(Hour& hour) {
  if (epoch_ == kFirstEpoch) return {};
  privacy::Random random = SeededRandom(parameters_.seed, "churn", epoch_);
  std::vector<size_t> places;
  for (size_t place = 0; place < fleet_.size(); ++place)
    if (DrawUnit(random) < parameters_.churn && !IsCheat(place)) places.push_back(place);
  for (const size_t place : places) world_.Replace(place);
  hour.enrolled = places.size();
  return fleet_.Replace(places, epoch_);
}

// Enrolment is closed: each decryptor commits to its part, then all are revealed.
Beacon SimulationRun::DrawBeacon() const {
  std::vector<BeaconPart> parts(parameters_.decryptors);
  std::vector<Commitment> commitments;
  for (uint32_t i = 0; i < parameters_.decryptors; ++i) {
    SeededRandom(parameters_.seed, "beacon", epoch_, i).Fill(parts[i]);
    commitments.push_back(Commit(epoch_, parts[i]));
  }
  return *Reveal(epoch_, commitments, parts);
}

// Some devices' queries are really encrypted; public mode gives the same answer.
Status SimulationRun::AskInPrivate() {
  static const Look kIdle{};
  for (uint32_t i = 0; i < parameters_.private_queries; ++i) {
    privacy::Random random = SeededRandom(parameters_.seed, "query", epoch_, i);
    const auto application = world_.MainApplication(static_cast<size_t>(random.Below(fleet_.size())));
    const auto looks = mix_.looks(application.value_or(0));
    const Look& look =
        application.has_value() ? looks[static_cast<size_t>(random.Below(looks.size()))] : kIdle;
    const int64_t begin_ns = ThreadTimeNs();
    const PrivateMatcher matcher(random);
    const PrivateQuery query = matcher.Ask(look.fingerprint, random);
    const int64_t asked_ns = ThreadTimeNs();
    ASSIGN_OR_RETURN(const auto answers, private_catalog_.Answer(query, random));
    const int64_t answered_ns = ThreadTimeNs();
    ASSIGN_OR_RETURN(const auto scores, matcher.Read(answers, mix_.known()));
    const Match found = BestMatch(scores);
    query_ns_ += asked_ns - begin_ns + ThreadTimeNs() - answered_ns;
    query_server_ns_ += answered_ns - asked_ns;
    run_.query_bytes = query.bytes();
    run_.answer_bytes = 0;
    for (const privacy::SwitchedAnswer& answer : answers) run_.answer_bytes += privacy::Pack(answer).size();
    ++run_.identification.private_queries;
    run_.identification.private_agreed += found == look.identified;
  }
  return {};
}

Status SimulationRun::ReportOf(size_t place, const Beacon& beacon, privacy::Random& random, Worker& worker) {
  Device& device = fleet_.device(place);
  const Assignment assignment = AssignmentOf(device.id(), epoch_, beacon, layout_);
  const auto application = world_.MainApplication(place);
  Finding finding;
  Row row = RoundToReport(Bins{});
  if (application.has_value()) {
    const auto looks = mix_.looks(*application);
    const Look& look = looks[static_cast<size_t>(random.Below(looks.size()))];
    finding = {.is_busy = true,
               .is_known = look.identified.is_known,
               .application = look.identified.application,
               .signature = look.signature};
    row = look.rows[assignment.group];
    Identification& count = worker.identification;
    if (*application < mix_.known()) {
      ++count.known;
      const bool is_right = look.identified.application == *application;
      count.known_right += look.identified.is_known && is_right;
      count.known_wrong += look.identified.is_known && !is_right;
    } else {
      ++count.unknown;
      count.unknown_right += !look.identified.is_known;
    }
  }

  const auto cheat = cheats_.find(place);
  const int64_t begin_ns = ThreadTimeNs();
  std::vector<uint32_t> message = MessageOf(finding, assignment, layout_, row);
  if (cheat != cheats_.end() && cheat->second == kSpoils) message[place % kReportSlots] += 1u << 24;
  ASSIGN_OR_RETURN(
      const auto report,
      kind_ == ReportKind::kMasked
          ? device.ReportMasked(epoch_, assignment.place, privacy::Slots(message), random)
          : device.ReportBfv(epoch_, assignment.place, privacy::Slots(message), fleet_.joint_key(), random));
  const int64_t made_ns = ThreadTimeNs();
  Verdict verdict = Verdict::kAccepted;
  if (cheat != cheats_.end() && cheat->second == kSignsWrongly) {
    std::vector<uint8_t> changed(report.begin(), report.end());
    changed[kReportHeaderBytes] ^= 1;
    verdict = worker.intake.Accept(changed);
  } else {
    verdict = worker.intake.Accept(report);
    if (cheat != cheats_.end() && cheat->second == kReportsTwice) worker.intake.Accept(report);
  }
  worker.make_ns += made_ns - begin_ns;
  worker.accept_ns += ThreadTimeNs() - made_ns;
  device.Acknowledge();
  if (verdict != Verdict::kAccepted) return {};

  auto& plain = worker.plain[{assignment.place, assignment.cohort}];
  plain.resize(kReportSlots);
  for (size_t slot = 0; slot < kReportSlots; ++slot) plain[slot] += message[slot];
  return {};
}

Status SimulationRun::Gather(const Beacon& beacon, Hour& hour, const Progress& progress,
                             std::vector<Cohort>& cohorts) {
  std::vector<Worker> workers;
  for (int i = 0; i < parameters_.threads; ++i)
    workers.emplace_back(Intake(fleet_.directory(), kind_, epoch_, beacon, layout_));

  const size_t slices = (fleet_.size() + kSliceDevices - 1) / kSliceDevices;
  std::vector<Status> done(slices);
  std::atomic<size_t> passed = 0;
  ForEachIndex(slices, parameters_.threads, [&](size_t slice, size_t worker) {
    privacy::Random random = SeededRandom(parameters_.seed, "slice", epoch_, slice);
    const size_t end = std::min(fleet_.size(), (slice + 1) * kSliceDevices);
    for (size_t place = slice * kSliceDevices; place < end && done[slice].has_value(); ++place)
      done[slice] = ReportOf(place, beacon, random, workers[worker]);
    const size_t now = ++passed;
    if (worker == 0)
      static_cast<void>(progress("reporting", static_cast<double>(now) / static_cast<double>(slices)));
  });
  for (Status& status : done) TRY(std::move(status));

  Worker& all = workers[0];
  for (size_t i = 1; i < workers.size(); ++i) {
    TRY(all.intake.Merge(std::move(workers[i].intake)));
    for (auto& [place, theirs] : workers[i].plain) {
      auto& ours = all.plain[place];
      ours.resize(kReportSlots);
      for (size_t slot = 0; slot < kReportSlots; ++slot) ours[slot] += theirs[slot];
    }
    all.make_ns += workers[i].make_ns;
    all.accept_ns += workers[i].accept_ns;
  }
  for (const Worker& worker : workers) {
    Identification& sum = run_.identification;
    sum.known += worker.identification.known;
    sum.known_right += worker.identification.known_right;
    sum.known_wrong += worker.identification.known_wrong;
    sum.unknown += worker.identification.unknown;
    sum.unknown_right += worker.identification.unknown_right;
  }
  make_ns_ += all.make_ns;
  accept_ns_ += all.accept_ns;
  reports_ += fleet_.size();
  hour.verdicts = all.intake.counts();

  for (auto& [place, gathered] : all.intake.gathered()) {
    ++hour.lists;
    if (gathered.entries.size() < parameters_.min_reports) {
      ++hour.lists_too_small;
      continue;
    }
    ASSIGN_OR_RETURN(auto list,
                     privacy::ReportList::Create(epoch_, place.first, std::move(gathered.entries)));
    cohorts.push_back({place, std::move(list), std::move(gathered), std::move(all.plain.at(place))});
  }
  return {};
}

Status SimulationRun::PassHour(const Progress& progress) {
  Hour hour;
  TRY(Churn(hour));
  world_.PassHour();
  hour.devices = fleet_.directory().size();
  hour.busy_share = world_.busy_share();
  const Beacon beacon = DrawBeacon();
  TRY(AskInPrivate());
  const int64_t compared_ns = compare_ns_;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Cohort> cohorts;
  TRY(Gather(beacon, hour, progress, cohorts));
  const auto gathered = std::chrono::steady_clock::now();
  TRY(ReleaseAll(std::move(cohorts), {.epoch = epoch_, .beacon = beacon, .layout = layout_}, hour));
  // Excludes the comparison with the truth, which only a simulation can make.
  const double comparing_s = static_cast<double>(compare_ns_ - compared_ns) / 1e9;
  pipeline_s_ += Seconds(begin) - comparing_s;
  release_s_ += Seconds(gathered) - comparing_s;
  Cover(hour);
  run_.hours.push_back(hour);
  ++epoch_;
  for (privacy::MaskDecryptor& decryptor : fleet_.mask_decryptors()) TRY(decryptor.Forget(epoch_));
  for (privacy::BfvDecryptor& decryptor : fleet_.bfv_decryptors()) decryptor.Forget(epoch_);
  return {};
}

Run SimulationRun::Finish() {
  const auto hours = static_cast<double>(std::max<size_t>(run_.hours.size(), 1));
  run_.error.within_two_deviations /= static_cast<double>(std::max<uint64_t>(run_.error.slots, 1));
  for (const auto& [device, windows] : windows_)
    run_.budgets.windows = std::max(run_.budgets.windows, windows);
  if (kind_ == ReportKind::kMasked) {
    const double rho = privacy::Rho(privacy::kSensitivity, static_cast<double>(parameters_.sigma));
    run_.budgets.epsilon_window = privacy::Epsilon(rho, parameters_.delta);
    run_.budgets.epsilon_spent =
        privacy::Epsilon(rho * static_cast<double>(run_.budgets.windows), parameters_.delta);
    // Of a window that one decryptor didn't answer, the others' budget is spent all the same.
    int64_t left = privacy::Budget(parameters_.epsilon, parameters_.delta, rho).windows_left() -
                   static_cast<int64_t>(run_.budgets.windows);
    for (size_t place = 0; place < fleet_.size(); ++place)
      for (const privacy::MaskDecryptor& decryptor : fleet_.mask_decryptors())
        left = std::min(left, decryptor.WindowsLeft(fleet_.device(place).id()));
    run_.budgets.windows_left = static_cast<uint64_t>(left);
    run_.at_epsilon = CoverageAtEpsilons(truth_, released_, layout_, parameters_);
  }
  // Unknown applications, and the buckets of most of their observations.
  const auto place = layout_.signatures_place();
  const auto slots = released_.slots(place);
  const auto spreading = FindSpreading({slots.begin(), slots.end()},
                                       ReleaseThreshold(parameters_.sigma, released_.answers(place)) * 2);
  run_.identification.signatures = spreading.size();
  for (const Spreading& one : spreading) {
    bool is_true = false;
    for (uint32_t i = mix_.known(); i < mix_.count(); ++i)
      is_true = is_true || std::ranges::any_of(
                               mix_.looks(i), [&](const Look& look) { return look.signature == one.bucket; });
    run_.identification.signatures_true += is_true;
  }

  Measured& measured = run_.measured;
  measured.enrol_us = MicrosPer(fleet_.enrol_ns(), fleet_.enrolled());
  measured.report_us = MicrosPer(make_ns_, reports_);
  measured.accept_us = MicrosPer(accept_ns_, reports_);
  measured.answer_us = MicrosPer(answer_ns_, answered_);
  measured.look_us = mix_.look_ns_per_kernel() * parameters_.look_kernels / 1e3;
  measured.match_us = mix_.match_ns() / 1e3;
  measured.query_us = MicrosPer(query_ns_, run_.identification.private_queries);
  measured.query_server_us = MicrosPer(query_server_ns_, run_.identification.private_queries);
  measured.pipeline_s = pipeline_s_ / hours;
  measured.release_s = release_s_ / hours;
  // Enrolment happens once, and its cost is spread over a year.
  const double always_us = measured.look_us + measured.report_us + measured.enrol_us / (365 * 24);
  const double hour_us = 3600e6 * parameters_.node_cores;
  measured.device_share = (always_us + measured.query_us) / hour_us;
  measured.device_share_public = (always_us + measured.match_us) / hour_us;
  const Queueing queueing = SimulateRequests({.requests = parameters_.devices,
                                              .report_us = measured.accept_us,
                                              .query_us = measured.query_server_us,
                                              .servers = parameters_.servers,
                                              .seed = parameters_.seed});
  measured.report_latency = queueing.report;
  measured.query_latency = queueing.query;
  measured.servers_busy = queueing.busy;
  return std::move(run_);
}

}  // namespace gpusonde::fleet
