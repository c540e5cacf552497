// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/sampling.h"

namespace gpusonde::fleet {

// What the decryptors drew for an epoch.
struct DrawnEpoch {
  uint32_t epoch = 0;
  Beacon beacon{};
  Layout layout;
};

// What a decryptor checks before it answers for an aggregator's list: kPermissionDenied unless the list is of
// the drawn epoch and all its devices were drawn for its page and one cohort. Otherwise the aggregator could
// choose whom a sum is about, or list a far epoch, for which keys can't be ratcheted back. It can still leave
// reports out (docs/fleet/privacy.md, Limits).
Status CheckDraw(const privacy::ReportList& list, const DrawnEpoch& draw);

}  // namespace gpusonde::fleet
