// SPDX-License-Identifier: Apache-2.0
// Measures whether the run time of a device's computations depends on its secrets: dudect (Reparaz, Balasch,
// Verbauwhede, "Dude, is my code constant time?", 2017). Each function runs on a fixed and on random secrets
// in random order; Welch's t of the two times must stay below 4.5, without the slowest times, which are noise
// of the machine. `leaky` is the control, which must be found.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "fleet/catalog.h"
#include "fleet/privacy/random.h"
#include "fleet/roles/message.h"

namespace {

using namespace gpusonde;         // NOLINT(google-build-using-namespace): a program of its own
using namespace gpusonde::fleet;  // NOLINT(google-build-using-namespace)
using privacy::Random;

constexpr int kApplications = 61;

uint64_t Cycles() {
  unsigned ignored = 0;
  _mm_lfence();
  return __rdtscp(&ignored);
}

// The largest |t| without the slowest 5, 10 and 20 % of all times.
double LargestT(std::array<std::vector<double>, 2> times) {
  std::vector<double> all = times[0];
  all.insert(all.end(), times[1].begin(), times[1].end());
  std::ranges::sort(all);
  double largest = 0;
  for (const double kept : {0.95, 0.9, 0.8}) {
    const double cut = all[static_cast<size_t>(kept * static_cast<double>(all.size() - 1))];
    std::array<double, 2> mean{};
    std::array<double, 2> error{};
    for (size_t i = 0; i < 2; ++i) {
      double count = 0;
      double sum = 0;
      double squares = 0;
      for (const double time : times[i]) {
        if (time > cut) continue;
        ++count;
        sum += time;
        squares += time * time;
      }
      mean[i] = sum / count;
      error[i] = (squares / count - mean[i] * mean[i]) / count;
    }
    largest = std::max(largest, std::abs(mean[0] - mean[1]) / std::sqrt(error[0] + error[1]));
  }
  return largest;
}

// Secrets are prepared beforehand, in blocks: class 0 repeats one secret, class 1 has random ones.
template <class Secret>
double Measure(size_t runs, Random& random, const std::function<Secret(bool is_fixed)>& draw,
               const std::function<void(const Secret&)>& work) {
  constexpr size_t kBlock = 1000;
  std::array<std::vector<double>, 2> times;
  for (size_t done = 0; done < runs; done += kBlock) {
    std::vector<Secret> secrets;
    std::vector<bool> is_fixed;
    for (size_t i = 0; i < kBlock; ++i) {
      is_fixed.push_back(random.Bit());
      secrets.push_back(draw(is_fixed.back()));
    }
    for (size_t i = 0; i < kBlock; ++i) {
      const uint64_t begin = Cycles();
      work(secrets[i]);
      const uint64_t end = Cycles();
      times[is_fixed[i] ? 0 : 1].push_back(static_cast<double>(end - begin));
    }
  }
  return LargestT(std::move(times));
}

struct Timing {
  std::string name;
  double t;
  bool is_control;
};

std::vector<Timing> MeasureAll(size_t runs) {
  Random random = Random::FromSystem();
  const Layout layout{.groups = 8, .pages = 1, .cohorts = 1};
  const auto row = RoundToReport(Bins{});

  using ScoresOf = std::vector<int32_t>;
  const std::function<ScoresOf(bool)> draw_scores = [&](bool is_fixed) {
    ScoresOf scores(kApplications, 1000);
    if (is_fixed)
      scores[3] = kUnknownFloor + 9;
    else
      for (int32_t& score : scores)
        score = static_cast<int32_t>(random.Below(Uint128{2} * kUnknownFloor)) - kUnknownFloor / 2;
    return scores;
  };
  const std::function<Finding(bool)> draw_finding = [&](bool is_fixed) {
    if (is_fixed) return Finding{.is_busy = true, .is_known = true};
    const auto which = static_cast<uint32_t>(random.Below(kApplications + 2));
    if (which == kApplications) return Finding{};
    if (which > kApplications) return Finding{.is_busy = true, .signature = 77};
    return Finding{.is_busy = true, .is_known = true, .application = which};
  };
  const std::function<void(const Finding&)> histogram = [&](const Finding& finding) {
    benchmark::DoNotOptimize(MessageOf(finding, {.place = 1, .group = 1}, layout, row));
  };
  const std::function<void(const Finding&)> signature = [&](const Finding& finding) {
    benchmark::DoNotOptimize(MessageOf(finding, {.place = layout.signatures_place()}, layout, row));
  };
  return {
      {"best match of 61 scores",
       Measure<ScoresOf>(runs, random, draw_scores,
                         [](const ScoresOf& scores) { benchmark::DoNotOptimize(BestMatch(scores)); }),
       false},
      {"message with a histogram", Measure<Finding>(runs, random, draw_finding, histogram), false},
      {"message with a signature", Measure<Finding>(runs, random, draw_finding, signature), false},
      {"a search that stops at the first match",
       Measure<ScoresOf>(runs, random, draw_scores,
                         [](const ScoresOf& scores) {
                           benchmark::DoNotOptimize(std::ranges::find_if(
                               scores, [](int32_t score) { return score > kUnknownFloor; }));
                         }),
       true},
  };
}

}  // namespace

// bench_timing RUNS: rows for bench/fleet_bench.py.
int main(int count, char** arguments) {
  const size_t runs = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1'000'000;
  JsonWriter json;
  json.BeginObject().Key("rows").BeginArray();
  for (const Timing& row : MeasureAll(runs)) {
    json.BeginObject()
        .Field("name", fmt::format("time against secrets: {} ({} runs{})", row.name, runs,
                                   row.is_control ? "; the control" : ""))
        .Field("value", row.t)
        .Field("unit", "|t|");
    if (!row.is_control) json.Field("goal", "≤ 4.5").Field("met", row.t <= 4.5);
    json.EndObject();
  }
  fmt::print("{}\n", json.EndArray().EndObject().Take());
}
