// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/stats/inference.h"

namespace gpusonde::analyze {
namespace {

// Name and launch shape.
using Alike = std::pair<uint32_t, uint32_t>;

bool IsCompared(const Job& job, const Stratum& stratum) { return !IsCommunication(job, stratum.name); }

std::map<Alike, LogMoments> AllRanks(const Job& job) {
  std::map<Alike, LogMoments> all;
  for (const JobRank& rank : job.ranks)
    for (const Stratum& stratum : rank.result.kernels.strata)
      if (IsCompared(job, stratum)) all[{stratum.name, stratum.shape}].Merge(stratum.logs);
  return all;
}

// What a rank's kernels took beside what they would have taken on the other ranks.
class RankTime {
 public:
  // Skipped unless both have kMinSamples.
  void Add(const Stratum& stratum, const LogMoments& others) {
    const LogMoments& these = stratum.logs;
    if (these.count < kMinSamples || others.count < kMinSamples) return;
    const auto taken_ns = static_cast<double>(stratum.sum.total_ns);
    Times& kernel = kernels_[stratum.name];
    const double expected_ns = taken_ns / std::exp2((these.Mean() - others.Mean()) / kLogUnits);
    for (Times* const times : {&kernel, &all_}) {
      times->taken_ns += taken_ns;
      times->expected_ns += expected_ns;
    }
    variance_ += expected_ns * expected_ns *
                 (these.Variance() / static_cast<double>(these.count) +
                  others.Variance() / static_cast<double>(others.count));
    count_ += these.count;
  }

  // The ratio of the times. Kernels count by their time, not by how well they are known: a kernel that alone
  // takes four times as long may be the best known one. The error follows from those of the kernels (delta
  // method).
  Ratio Finish() const {
    if (all_.expected_ns <= 0) return {};
    const double units = kLogUnits * std::log2(all_.taken_ns / all_.expected_ns);
    return RatioOf(count_, units, std::sqrt(variance_) / all_.expected_ns);
  }

  // The kernel that makes up most of the difference, if others hardly contribute to it: at least half of it,
  // and one and a half times its share of the time. Otherwise without a name.
  SlowRankLine::Kernel Concentrated(const Job& job) const {
    constexpr double kHalf = 0.5;
    constexpr double kBeyondItsShare = 1.5;
    const auto& [name, times] =
        *std::ranges::max_element(kernels_, {}, [](const auto& kernel) { return kernel.second.excess_ns(); });
    const double share = times.excess_ns() / all_.excess_ns();
    if (share < kHalf || share < kBeyondItsShare * times.expected_ns / all_.expected_ns) return {};
    return {.name = std::string(job.names[name]),
            .ratio = times.taken_ns / times.expected_ns,
            .excess_ns = std::llround(times.excess_ns())};
  }

 private:
  struct Times {
    double taken_ns = 0;
    double expected_ns = 0;

    double excess_ns() const { return taken_ns - expected_ns; }
  };

  std::map<uint32_t, Times> kernels_;  // by name
  Times all_;
  double variance_ = 0;  // of all_.expected_ns, in units of logarithms
  int64_t count_ = 0;
};

}  // namespace

std::vector<SlowRankLine> FindSlowRanks(const Job& job) {
  if (job.ranks.size() < 2) return {};
  const std::map<Alike, LogMoments> all = AllRanks(job);
  std::vector<SlowRankLine> lines;
  std::vector<double> p;
  for (const JobRank& rank : job.ranks) {
    RankTime time;
    for (const Stratum& stratum : rank.result.kernels.strata) {
      if (!IsCompared(job, stratum)) continue;
      LogMoments others = all.at({stratum.name, stratum.shape});
      others.Remove(stratum.logs);
      time.Add(stratum, others);
    }
    const Ratio ratio = time.Finish();
    p.push_back(ratio.p);
    lines.push_back({.rank = rank.number,
                     .kernels = ratio.count,
                     .ratio = ratio.ratio,
                     .low = ratio.low,
                     .high = ratio.high});
    if (ratio.ratio >= kMinRatio) lines.back().mostly = time.Concentrated(job);
  }
  const std::vector<bool> significant = Significant(p);
  std::vector<SlowRankLine> slow;
  for (size_t i = 0; i < lines.size(); ++i)
    if (significant[i] && lines[i].ratio >= kMinRatio) slow.push_back(std::move(lines[i]));
  return slow;
}

}  // namespace gpusonde::analyze
