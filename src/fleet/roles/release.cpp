// SPDX-License-Identifier: Apache-2.0
#include "fleet/roles/release.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpusonde::fleet {

using privacy::kReportRows;
using privacy::kReportSlots;
using privacy::kReportWeight;
using privacy::kRowSlots;

double NoiseDeviation(uint64_t sigma, uint64_t answers) {
  return static_cast<double>(sigma) * std::sqrt(static_cast<double>(answers));
}

Status CheckBalance(const privacy::NoisySum& sum, uint64_t sigma, bool signatures) {
  const double deviation = NoiseDeviation(sigma, sum.answers);
  const double allowed = 6 * deviation;  // times the root of the slots added
  const auto expected = static_cast<double>(kReportWeight * sum.reports);
  for (size_t slot = 0; slot < kReportSlots; ++slot)
    if (sum.slots[slot] < -7 * deviation || sum.slots[slot] > expected + 7 * deviation)
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("release: slot {} of row {} weighs {}, beyond 0 to {}", slot % kRowSlots,
                              slot / kRowSlots, sum.slots[slot], expected));
  double total = 0;
  for (size_t row = 0; row < kReportRows; ++row) {
    double bins = 0;
    for (size_t slot = 0; slot + 1 < kRowSlots; ++slot) bins += sum.slots[row * kRowSlots + slot];
    const double contributors = sum.slots[row * kRowSlots + kRowSlots - 1];
    total += signatures ? bins + contributors : bins;
    if (!signatures && std::abs(bins - contributors) > allowed * std::sqrt(static_cast<double>(kRowSlots)))
      return Fail(ErrorCode::kCorrupt, fmt::format("release: row {}'s bins weigh {}, its contributors {}",
                                                   row, bins, contributors));
  }
  const auto slots = static_cast<double>(signatures ? kReportSlots : kReportSlots - kReportRows);
  if (std::abs(total - expected) > allowed * std::sqrt(slots))
    return Fail(ErrorCode::kCorrupt,
                fmt::format("release: {} reports weigh {} instead of {}", sum.reports, total, expected));
  return {};
}

Histograms::Histograms(const Layout& layout) : pages_(layout.places()) {
  for (Page& page : pages_) page.slots.resize(kReportSlots);
}

void Histograms::Add(uint32_t place, const privacy::NoisySum& sum) {
  Page& page = pages_[place];
  for (size_t slot = 0; slot < kReportSlots; ++slot) page.slots[slot] += sum.slots[slot];
  page.answers += sum.answers;
}

double Histograms::Contributors(uint32_t place, uint32_t row) const {
  return pages_[place].slots[row * kRowSlots + kRowSlots - 1] / kReportWeight;
}

double ReleaseThreshold(uint64_t sigma, uint64_t answers) {
  return 20 + 2.33 * NoiseDeviation(sigma, answers) / kReportWeight;
}

std::vector<uint64_t> Suspects::Judge(std::span<const Cohort> window) {
  constexpr double kExpectedHonest = 0.01;
  double devices = 0;
  double refused = 0;
  for (const Cohort& cohort : window) {
    const auto size = static_cast<double>(cohort.list->entries().size());
    devices += size;
    if (cohort.refused) refused += size;
  }
  std::vector<uint64_t> suspected;
  for (const Cohort& cohort : window) {
    for (const auto& entry : cohort.list->entries()) {
      if (!cohort.refused) {
        log_luck_.erase(entry.device);
        continue;
      }
      double& luck = log_luck_.try_emplace(entry.device, 0.0).first->second;
      luck += std::log(refused / devices);
      if (devices * std::exp(luck) >= kExpectedHonest) continue;
      suspected.push_back(entry.device);
      log_luck_.erase(entry.device);
    }
  }
  return suspected;
}

}  // namespace gpusonde::fleet
