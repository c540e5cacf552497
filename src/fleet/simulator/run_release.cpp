// SPDX-License-Identifier: Apache-2.0
// Processes an hour's reports: the decryptors answer, sums are released and compared with the truth.
#include <algorithm>
#include <cmath>
#include <utility>

#include "fleet/roles/message.h"
#include "fleet/simulator/parallel.h"
#include "fleet/simulator/run.h"

namespace gpusonde::fleet {

using privacy::kReportSlots;
using privacy::kReportWeight;
using privacy::kRowSlots;

Result<privacy::NoisySum> SimulationRun::Open(Cohort& cohort, std::vector<privacy::MaskAnswer> masks,
                                              std::span<const privacy::Polynomial> shares) const {
  if (kind_ == ReportKind::kMasked)
    return privacy::Unmask(std::move(std::get<privacy::MaskedSum>(cohort.gathered.sum)), cohort.list,
                           std::move(masks));
  const CiphertextSum& sum = std::get<CiphertextSum>(cohort.gathered.sum);
  const auto found = privacy::Combine(sum.ciphertext().Copy(), shares, privacy::kReportBits);
  privacy::NoisySum exact{.reports = sum.reports(), .answers = 0, .slots = {}};
  for (const uint64_t slot : found.values()) exact.slots.push_back(static_cast<int32_t>(slot));
  return exact;
}

Status SimulationRun::ReleaseAll(std::vector<Cohort> cohorts, const DrawnEpoch& draw, Hour& hour) {
  const bool is_dead = parameters_.dead_hour == epoch_ - kFirstEpoch;
  struct Answers {
    std::vector<Result<privacy::MaskAnswer>> masks;
    std::vector<Result<privacy::Polynomial>> shares;
    int64_t spent_ns = 0;
  };
  std::vector<Answers> answers(parameters_.decryptors);
  ForEachIndex(answers.size(), parameters_.threads, [&](size_t decryptor, size_t) {
    Answers& own = answers[decryptor];
    if (is_dead && decryptor == 0) return;
    const int64_t begin_ns = ThreadTimeNs();
    for (const Cohort& cohort : cohorts) {
      const auto mask = [&]() -> Result<privacy::MaskAnswer> {
        TRY(CheckDraw(cohort.list, draw));
        return fleet_.mask_decryptors()[decryptor].Answer(cohort.list);
      };
      const auto share = [&]() -> Result<privacy::Polynomial> {
        TRY(CheckDraw(cohort.list, draw));
        return fleet_.bfv_decryptors()[decryptor].Answer(
            cohort.list, std::get<CiphertextSum>(cohort.gathered.sum).ciphertext());
      };
      if (kind_ == ReportKind::kMasked)
        own.masks.push_back(mask());
      else
        own.shares.push_back(share());
    }
    own.spent_ns = ThreadTimeNs() - begin_ns;
  });
  for (const Answers& own : answers) answer_ns_ += own.spent_ns;

  std::vector<Suspects::Cohort> window;
  for (size_t i = 0; i < cohorts.size(); ++i) {
    Cohort& cohort = cohorts[i];
    answered_ += cohort.list.entries().size() * (answers.size() - (is_dead ? 1 : 0));
    std::vector<privacy::MaskAnswer> masks;
    std::vector<privacy::Polynomial> shares;
    for (Answers& own : answers) {
      if (i < own.masks.size() && own.masks[i].has_value()) masks.push_back(*std::move(own.masks[i]));
      if (i < own.shares.size() && own.shares[i].has_value()) shares.push_back(*std::move(own.shares[i]));
    }
    if (masks.size() + shares.size() < answers.size()) {
      ++hour.lists_unanswered;
      continue;
    }
    ASSIGN_OR_RETURN(const privacy::NoisySum sum, Open(cohort, std::move(masks), shares));
    const int64_t begin_ns = ThreadTimeNs();
    Compare(cohort, sum);
    compare_ns_ += ThreadTimeNs() - begin_ns;
    for (const auto& entry : cohort.list.entries()) ++windows_[entry.device];
    const bool refused =
        !CheckBalance(sum, parameters_.sigma, cohort.place.first == layout_.signatures_place()).has_value();
    window.push_back({&cohort.list, refused});
    if (refused) {
      ++hour.lists_refused;
      continue;
    }
    released_.Add(cohort.place.first, sum);
    auto& truth = truth_[cohort.place.first];
    for (uint32_t row = 0; row < privacy::kReportRows; ++row)
      truth[row] += cohort.plain[row * kRowSlots + kRowSlots - 1] / kReportWeight;
  }
  for (const uint64_t device : suspects_.Judge(window)) {
    ++hour.expelled;
    hour.expelled_honest += !IsCheat(fleet_.Expel(device));
  }
  return {};
}

void SimulationRun::Compare(const Cohort& cohort, const privacy::NoisySum& sum) {
  std::vector<int64_t> noise(kReportSlots);
  for (uint32_t decryptor = 0; decryptor < parameters_.decryptors; ++decryptor) {
    const auto own = fleet_.NoiseIn(decryptor, cohort.list);
    for (size_t slot = 0; slot < kReportSlots; ++slot) noise[slot] += own[slot];
  }
  const double deviation = NoiseDeviation(parameters_.sigma, sum.answers);
  ErrorOfSums& error = run_.error;
  for (size_t slot = 0; slot < kReportSlots; ++slot) {
    const int64_t off = sum.slots[slot] - static_cast<int64_t>(cohort.plain[slot]);
    error.largest_before_noise =
        std::max(error.largest_before_noise, static_cast<uint64_t>(std::abs(off - noise[slot])));
    const double deviations = sum.answers == 0 ? 0 : std::abs(static_cast<double>(off)) / deviation;
    error.largest_deviations = std::max(error.largest_deviations, deviations);
    error.within_two_deviations += deviations <= 2 ? 1 : 0;
  }
  error.slots += kReportSlots;
}

void SimulationRun::Cover(Hour& hour) const {
  uint64_t sampled = 0;
  uint64_t shown = 0;
  for (uint32_t application = 0; application < parameters_.applications; ++application) {
    const uint32_t page = application / kApplicationsPerPage;
    const uint32_t row = application % kApplicationsPerPage;
    for (uint32_t group = 0; group < layout_.groups; ++group) {
      const uint32_t place = page * layout_.groups + group;
      const bool there = truth_[place][row] > 0;
      sampled += there;
      if (released_.Contributors(place, row) <= ReleaseThreshold(parameters_.sigma, released_.answers(place)))
        continue;
      if (there)
        ++shown;
      else
        ++hour.released_falsely;
    }
  }
  const auto all = static_cast<double>(size_t{layout_.groups} * parameters_.applications);
  hour.sampled_coverage = static_cast<double>(sampled) / all;
  hour.released_coverage = static_cast<double>(shown) / all;
}

}  // namespace gpusonde::fleet
