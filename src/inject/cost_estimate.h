// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gpusonde::inject {

// Estimates the profiling overhead of a program from its pace while the library is awake and while it is
// asleep: by how much a step takes longer. Each sleep is compared with the halves of the awake windows beside
// it, so that a program that gets slower or faster by itself is compared with itself of a second ago; a sleep
// whose two sides differ by more than kSteady says nothing and is left out. The estimate is the median of all
// means of two comparisons (Hodges and Lehmann 1963) of the newest kPairs sleeps, and its 95 % interval the
// one that inverts Wilcoxon's signed-rank test: neither supposes a distribution, and single sleeps during
// which something else happened move neither by much. Not thread-safe.
//
// Uses neither the C++ library nor the heap, as the inject library has neither.
class CostEstimate {
 public:
  static constexpr uint32_t kPairs = 32;
  // With fewer comparisons no interval of 95 % exists: nothing is known yet.
  static constexpr uint32_t kMinPairs = 6;
  static constexpr double kSteady = 1.25;
  // Comparisons beyond these are changes of the program, not costs.
  static constexpr double kMinCost = -0.5, kMaxCost = 3;

  // A kernel that the program launches once or a few times a step: its number among the program's kernels,
  // which CUDA counts also while the library is asleep, and when it ran. Time 0: there was none.
  struct Mark {
    uint64_t number = 0;
    uint64_t time_ns = 0;
  };
  // A sleep: marks of the second half of the awake window before it, when it began and ended, and marks of
  // the first half of the window after it. All marks are of the same kernel, so that whole steps lie between
  // them.
  struct Sleep {
    Mark before[2];
    uint64_t from_ns = 0;
    uint64_t until_ns = 0;
    Mark after[2];
  };
  // As a share of the time of a step without profiling: 0.01 is 1 %.
  struct Interval {
    uint32_t pairs = 0;
    double cost = 0;  // all 0 if fewer than kMinPairs
    double low = 0;
    double high = 0;

    bool known() const { return pairs >= kMinPairs; }
    // Whether profiling certainly costs something.
    bool significant() const { return known() && low > 0; }
  };

  // False if the sleep can't be compared.
  bool Add(const Sleep& sleep) {
    double cost = 0;
    if (!Compare(sleep, cost)) return false;
    costs_[next_ % kPairs] = cost;
    ++next_;
    return true;
  }

  Interval Estimate() const {
    const uint32_t pairs = next_ < kPairs ? next_ : kPairs;
    if (pairs < kMinPairs) return {.pairs = pairs};
    double means[kPairs * (kPairs + 1) / 2];
    size_t count = 0;
    for (uint32_t i = 0; i < pairs; ++i)
      for (uint32_t j = i; j < pairs; ++j) means[count++] = (costs_[i] + costs_[j]) / 2;
    Sort(means, count);
    const size_t cut = kCritical[pairs - kMinPairs];
    return {.pairs = pairs,
            .cost = (means[(count - 1) / 2] + means[count / 2]) / 2,
            .low = means[cut],
            .high = means[count - 1 - cut]};
  }

 private:
  // The largest W of Wilcoxon's signed-rank test with P(at most W) ≤ 2.5 %, for 6 to 32 comparisons; computed
  // from the exact distribution.
  static constexpr uint8_t kCritical[kPairs - kMinPairs + 1] = {0,  2,  3,  5,   8,   10,  13,  17,  21,
                                                                25, 29, 34, 40,  46,  52,  58,  65,  73,
                                                                81, 89, 98, 107, 116, 126, 137, 147, 159};

  // Time per kernel between two marks; 0 if they are not two, or not in order.
  static double PaceOf(const Mark& first, const Mark& last) {
    if (first.time_ns == 0 || last.time_ns <= first.time_ns || last.number <= first.number) return 0;
    return static_cast<double>(last.time_ns - first.time_ns) /
           static_cast<double>(last.number - first.number);
  }

  static double Between(uint64_t from_ns, uint64_t until_ns) {
    return until_ns > from_ns ? static_cast<double>(until_ns - from_ns) : 0;
  }

  static bool Compare(const Sleep& sleep, double& cost) {
    const double before = PaceOf(sleep.before[0], sleep.before[1]);
    const double after = PaceOf(sleep.after[0], sleep.after[1]);
    if (before == 0 || after == 0 || before > kSteady * after || after > kSteady * before) return false;
    const Mark& last = sleep.before[1];
    const Mark& first = sleep.after[0];
    if (PaceOf(last, first) == 0) return false;
    // Between the last mark before the sleep and the first after it, the library was awake for a moment on
    // both sides.
    const double awake_before_ns = Between(last.time_ns, sleep.from_ns);
    const double awake_after_ns = Between(sleep.until_ns, first.time_ns);
    const double asleep_ns = Between(last.time_ns, first.time_ns) - awake_before_ns - awake_after_ns;
    const double kernels =
        static_cast<double>(first.number - last.number) - awake_before_ns / before - awake_after_ns / after;
    if (asleep_ns <= 0 || kernels <= 0) return false;
    cost = (before + after) / 2 / (asleep_ns / kernels) - 1;
    return cost > kMinCost && cost < kMaxCost;
  }

  // Shellsort with Ciura's gaps; there are at most 528 numbers.
  static void Sort(double* numbers, size_t count) {
    for (const size_t gap :
         {size_t{301}, size_t{132}, size_t{57}, size_t{23}, size_t{10}, size_t{4}, size_t{1}})
      for (size_t i = gap; i < count; ++i) {
        const double number = numbers[i];
        size_t to = i;
        for (; to >= gap && numbers[to - gap] > number; to -= gap) numbers[to] = numbers[to - gap];
        numbers[to] = number;
      }
  }

  double costs_[kPairs] = {};
  uint32_t next_ = 0;
};

}  // namespace gpusonde::inject
