// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::fleet {

// When what happens to an epoch, by everybody's own clock in Unix time. With a period T, epoch E
//   - is enrolled for until E·T,
//   - is measured from E·T to (E+1)·T, while the decryptors draw its beacon,
//   - is reported for from (E+1)·T to (E+1)·T + T/2, its beacon known,
//   - is answered for and released from then to (E+2)·T.
class Schedule {
 public:
  explicit Schedule(uint32_t period_s) : period_s_(period_s) {}

  // The epoch that is being measured. Unix times up to the year 2106 with periods of a second.
  uint32_t EpochAt(int64_t now_ms) const { return static_cast<uint32_t>(now_ms / PeriodMs()); }
  int64_t BeginMs(uint32_t epoch) const { return int64_t{epoch} * PeriodMs(); }
  int64_t ReportsBeginMs(uint32_t epoch) const { return BeginMs(epoch) + PeriodMs(); }
  int64_t ReportsEndMs(uint32_t epoch) const { return ReportsBeginMs(epoch) + PeriodMs() / 2; }
  int64_t AnswersEndMs(uint32_t epoch) const { return BeginMs(epoch) + 2 * PeriodMs(); }
  int64_t PeriodMs() const { return int64_t{period_s_} * 1000; }

 private:
  uint32_t period_s_;
};

}  // namespace gpusonde::fleet
