// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analyze/findings/job.h"
#include "analyze/stats/inference.h"

namespace gpusonde::analyze {
namespace {

// A kernel with all copies beside or before it, or with those of one class.
struct Test {
  PooledRatio ratio;
  LogMoments with;  // weighted by time
};
struct Which {
  std::string_view name;
  bool after;
  bool any;
  uint16_t copy;  // unused if any

  auto Key() const { return std::tuple(name, after, !any, copy); }
  bool operator<(const Which& other) const { return Key() < other.Key(); }
};

std::map<Which, Test> MakeTests(const Job& job) {
  std::map<Which, Test> tests;
  for (const JobRank& rank : job.ranks)
    for (const Stratum& stratum : rank.result.kernels.strata) {
      const std::string_view name = job.names[stratum.name];
      LogMoments any[2];
      const auto add = [&](const Which& which, const LogMoments& with) {
        if (with.count < kMinSamples || stratum.alone.count < kMinSamples) return;
        Test& test = tests[which];
        test.ratio.Add(with, stratum.alone);
        test.with.Merge(with);
      };
      for (const auto& [copy, with] : stratum.with_copy) {
        const bool after = CopyClass::Unpack(copy).after;
        add({name, after, false, copy}, with);
        any[after ? 1 : 0].Merge(with);
      }
      add({name, false, true, 0}, any[0]);
      add({name, true, true, 0}, any[1]);
    }
  return tests;
}

CopyEffectLine EffectLine(const Which& which, const Test& test, const Ratio& ratio) {
  CopyEffectLine line{.name = std::string(which.name), .after = which.after, .any_copy = which.any};
  if (!which.any) {
    const CopyClass copy = CopyClass::Unpack(which.copy);
    line.copy_kind = importers::Name(copy.kind);
    line.memory = importers::Name(copy.host_memory);
    line.size = kCopySizes[copy.size];
  }
  line.count = ratio.count;
  line.ratio = ratio.ratio;
  line.low = ratio.low;
  line.high = ratio.high;
  const double typical_ns = std::exp2(test.with.Mean() / kLogUnits);
  line.excess_ns = std::llround(typical_ns * static_cast<double>(test.with.count) * (1 - 1 / ratio.ratio));
  return line;
}

}  // namespace

std::vector<CopyEffectLine> FindCopyEffects(const Job& job) {
  const std::map<Which, Test> tests = MakeTests(job);
  std::vector<double> p;
  for (const auto& [which, test] : tests) p.push_back(test.ratio.Finish().p);
  const std::vector<bool> significant = Significant(p);
  std::vector<CopyEffectLine> lines;
  size_t i = 0;
  for (const auto& [which, test] : tests) {
    const Ratio ratio = test.ratio.Finish();
    if (significant[i++] && ratio.ratio >= kMinRatio) lines.push_back(EffectLine(which, test, ratio));
  }
  std::ranges::stable_sort(lines, std::greater<>(), &CopyEffectLine::excess_ns);
  return lines;
}

}  // namespace gpusonde::analyze
