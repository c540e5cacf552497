// SPDX-License-Identifier: Apache-2.0
#include "diagnose/watermark.h"

#include <algorithm>
#include <cstddef>

#include "base/time.h"
#include "diagnose/step_table.h"

namespace gpusonde::diagnose {
namespace {

int64_t WithMargin(int64_t ns) { return ns + ns / 4; }

}  // namespace

void Watermark::Ingest(int64_t time_ns) {
  round_oldest_ns_ = std::min(round_oldest_ns_, time_ns);
  round_newest_ns_ = std::max(round_newest_ns_, time_ns);
}

int64_t Watermark::Advance(int64_t now_ns, int64_t allowed_lateness_ns) {
  if (round_newest_ns_ > 0) {
    if (newest_ns_ > 0) out_of_order_ns_.push_back(std::max<int64_t>(0, newest_ns_ - round_oldest_ns_));
    age_ns_.push_back(
        std::clamp<int64_t>(now_ns - round_oldest_ns_, 0, kStepTable.watermark.max_age_ns.value));
    if (out_of_order_ns_.size() > kStepTable.watermark.rounds) out_of_order_ns_.pop_front();
    if (age_ns_.size() > kStepTable.watermark.rounds) age_ns_.pop_front();
    newest_ns_ = std::max(newest_ns_, std::min(round_newest_ns_, now_ns));
    round_oldest_ns_ = INT64_MAX;
    round_newest_ns_ = 0;
  }
  // An agent that is short of CPU time polls late.
  const int64_t oldest_ns = age_ns_.empty() ? 0 : std::ranges::max(age_ns_);
  int64_t watermark_ns = now_ns - std::max(allowed_lateness_ns, WithMargin(oldest_ns));
  if (out_of_order_ns_.size() >= kStepTable.watermark.min_rounds)
    watermark_ns = std::max(watermark_ns, newest_ns_ - WithMargin(std::ranges::max(out_of_order_ns_)) -
                                              kStepTable.watermark.margin_ns);
  return watermark_ns_ = std::max(watermark_ns_, watermark_ns);
}

}  // namespace gpusonde::diagnose
