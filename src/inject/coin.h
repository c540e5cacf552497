// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace gpusonde::inject {

// An independent coin for each call of one thread, so that a stack's share of GPU time can be estimated
// without bias (Horvitz-Thompson) from the chosen calls alone.
//
// Calls are of classes, by what they launch. Each class has a probability of its own, fixed for a second by
// what the last one was like: three quarters of the budget go to the classes by their calls, a quarter by the
// time that their kernels took. A kernel that runs seldom and long is so chosen every time, at the price of
// few choices elsewhere: with one probability for all and 250 choices a second, the share of one stack of a
// collective was off by up to 6.5 % of all GPU time in a minute, now, with 100, by 2.2 % (shares_test.cpp).
//
// Should a class turn out busier than it was, its probability is halved each time its calls have doubled.
// Either way it depends on calls and times that came before, never on what the coin chooses in this second: a
// token bucket does, and on real streams it is off by up to 97 % in total and 250 % per kernel
// (notes/gpu-profiling.md).
template <uint32_t kClasses>
class ClassCoin {
 public:
  // At most about this many a second and thread. DESIGN section 7 has 250; with 100 a launch costs half as
  // much on average and a minute tells shares nearly as well
  // (docs/decisions/0059-a-hundred-stacks-a-second.md).
  static constexpr uint32_t kPerSecond = 100;
  static constexpr uint32_t kCertain = 0x80000000;  // probabilities are in units of 2^-31
  // GPU time of each class in the last second, in any unit. Another thread may write it meanwhile.
  using Times = std::array<uint32_t, kClasses>;

  // Whether this call is chosen. `second` is any count of seconds that goes up by one each; `of` is the
  // class, any number; `times`, when it isn't null, is looked at when a second begins.
  bool Flip(uint32_t second, uint32_t of = 0, const Times* times = nullptr) {
    Class& its = classes_[of % kClasses];
    if (second != second_ || its.seen == its.limit) [[unlikely]]
      Adapt(second, its, times);
    ++its.seen;
    ++seen_;
    if (Next() >= its.probability) return false;
    probability_ = its.probability;
    return true;
  }

  // That of the last call that was chosen.
  uint32_t probability() const { return probability_; }

  bool seeded() const { return random_ != 0; }
  void Seed(uint64_t random, uint32_t second, uint32_t per_second = kPerSecond) {
    random_ = random;
    second_ = second;
    per_second_ = per_second;
    Fix(1, nullptr);
  }

 private:
  static constexpr uint32_t kWhole = 1024;
  static constexpr uint32_t kByTime = kWhole / 4;
  // What a class that begins may have before it is halved for the first time: few, because many may begin.
  static constexpr uint32_t kFresh = 4;

  struct Class {
    uint32_t seen;   // calls this second
    uint32_t limit;  // where the probability is halved
    uint32_t probability;
  };

  __attribute__((noinline)) void Adapt(uint32_t second, Class& its, const Times* times) {
    if (second != second_) {
      Fix(second - second_, times);
      second_ = second;
      return;
    }
    its.limit *= 2;
    if (seen_ > per_second_) its.probability /= 2;
  }

  // Probabilities for the second that begins, by the calls of the last `seconds`.
  void Fix(uint32_t seconds, const Times* times) {
    const auto time_of = [&](uint32_t of) {
      return times == nullptr ? 0 : __atomic_load_n(&(*times)[of], __ATOMIC_RELAXED);
    };
    uint64_t calls = 0;
    uint64_t time = 0;
    for (uint32_t of = 0; of < kClasses; ++of) {
      calls += classes_[of].seen / seconds;
      if (classes_[of].seen != 0) time += time_of(of);
    }
    const uint64_t by_time = time == 0 ? 0 : kByTime;
    for (uint32_t of = 0; of < kClasses; ++of) {
      Class& its = classes_[of];
      const uint64_t expected = its.seen / seconds;
      its.probability = kCertain;
      if (calls > per_second_ && expected != 0) {
        uint64_t choices = per_second_ * (kWhole - by_time) * expected / calls;  // in units of 1 / kWhole
        if (time != 0) choices += per_second_ * by_time * time_of(of) / time;
        if (choices < kWhole * expected)
          its.probability = static_cast<uint32_t>(kCertain * choices / (kWhole * expected));
      }
      its.limit = 2 * (expected > kFresh ? static_cast<uint32_t>(expected) : kFresh);
      its.seen = 0;
    }
    seen_ = 0;
  }

  // The upper 31 bits of Knuth's linear congruential generator (MMIX, The Art of Computer Programming
  // 2, 3.3.4).
  uint32_t Next() {
    random_ = random_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint32_t>(random_ >> 33);
  }

  uint64_t random_ = 0;
  uint32_t second_ = 0;
  uint32_t probability_ = 0;
  uint32_t seen_ = 0;  // calls of all classes this second
  uint32_t per_second_ = kPerSecond;
  std::array<Class, kClasses> classes_ = {};
};

// Programs launch some 200 kernels a second by name (data/kernel-streams); those that share a class share its
// luck.
using Coin = ClassCoin<256>;

}  // namespace gpusonde::inject
