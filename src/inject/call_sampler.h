// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace gpusonde::inject {

// Samples the calls of one thread independently, each with a known probability, so that a stack's share of
// GPU time can be estimated without bias (Horvitz-Thompson) from the sampled calls alone.
//
// Calls are grouped into classes by what they launch. Each class has a sampling probability of its own, fixed
// for a second by the second before: three quarters of the budget are divided by the number of calls, a
// quarter by the GPU time of their kernels. A rare, long kernel is therefore sampled every time, at the price
// of fewer samples elsewhere: with one probability for all and 250 samples a second, the share of one stack
// of a collective was off by up to 6.5 % of all GPU time in a minute; with 100 a second and classes it is off
// by 2.2 % (tests/inject/shares_test.cpp).
//
// If a class is busier than in the second before, its probability is halved each time its calls have doubled.
// The probability depends on earlier calls and times only, never on which calls were sampled in this second:
// a token bucket depends on them, and on real streams it is off by up to 97 % in total and 250 % per kernel.
template <uint32_t kClasses>
class ClassSampler {
 public:
  // Target of samples a second and thread. With 250, a launch costs twice as much on average, and the shares
  // of a minute are hardly more exact (docs/sampling.md, Launches).
  static constexpr uint32_t kPerSecond = 100;
  static constexpr uint32_t kCertain = 0x80000000;  // probabilities are in units of 2^-31
  // GPU time of each class in the last second, in any unit. Another thread may write it meanwhile.
  using Times = std::array<uint32_t, kClasses>;

  // Whether to sample this call. `second` is any count of seconds that increases by one each; `of` is the
  // class, any number; `times`, unless null, is read when a second begins.
  bool Sample(uint32_t second, uint32_t of = 0, const Times* times = nullptr) {
    Class& its = classes_[of % kClasses];
    if (second != second_ || its.seen == its.limit) [[unlikely]]
      Adapt(second, its, times);
    ++its.seen;
    ++seen_;
    if (Next() >= its.probability) return false;
    probability_ = its.probability;
    return true;
  }

  // The probability with which the last sampled call was sampled.
  uint32_t probability() const { return probability_; }

  bool seeded() const { return random_ != 0; }
  void Seed(uint64_t random, uint32_t second, uint32_t per_second = kPerSecond) {
    random_ = random;
    second_ = second;
    per_second_ = per_second;
    SetProbabilities(1, nullptr);
  }

 private:
  static constexpr uint32_t kWhole = 1024;
  static constexpr uint32_t kByTime = kWhole / 4;
  // A class without calls in the last second is expected to make this many; its probability is first halved
  // at twice as many. Few, because many classes may begin at once.
  static constexpr uint32_t kNewClassCalls = 4;

  struct Class {
    uint32_t seen;   // calls this second
    uint32_t limit;  // number of calls at which the probability is halved
    uint32_t probability;
  };

  __attribute__((noinline)) void Adapt(uint32_t second, Class& its, const Times* times) {
    if (second != second_) {
      SetProbabilities(second - second_, times);
      second_ = second;
      return;
    }
    its.limit *= 2;
    if (seen_ > per_second_) its.probability /= 2;
  }

  // Sets the probabilities for the second that begins from the calls of the last `seconds`.
  void SetProbabilities(uint32_t seconds, const Times* times) {
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
        uint64_t samples = per_second_ * (kWhole - by_time) * expected / calls;  // in units of 1 / kWhole
        if (time != 0) samples += per_second_ * by_time * time_of(of) / time;
        if (samples < kWhole * expected)
          its.probability = static_cast<uint32_t>(kCertain * samples / (kWhole * expected));
      }
      its.limit = 2 * (expected > kNewClassCalls ? static_cast<uint32_t>(expected) : kNewClassCalls);
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

// Programs launch some 200 distinct kernels a second (data/kernel-streams); kernels that share a class share
// its probability.
using CallSampler = ClassSampler<256>;

}  // namespace gpusonde::inject
