// SPDX-License-Identifier: Apache-2.0
#include "fleet/roles/draw.h"

#include <fmt/format.h>

#include <optional>

namespace gpusonde::fleet {

Status CheckDraw(const privacy::ReportList& list, const DrawnEpoch& draw) {
  if (list.epoch() != draw.epoch)
    return Fail(
        ErrorCode::kPermissionDenied,
        fmt::format("report list: of epoch {}, but the beacon was drawn for {}", list.epoch(), draw.epoch));
  std::optional<uint32_t> cohort;
  for (const privacy::ReportList::Entry& entry : list.entries()) {
    const Assignment drawn = AssignmentOf(entry.device, draw.epoch, draw.beacon, draw.layout);
    if (drawn.place != list.page())
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("report list: device {} was drawn for page {}, not for {}", entry.device,
                              drawn.place, list.page()));
    if (cohort.value_or(drawn.cohort) != drawn.cohort)
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("report list: device {} was drawn for cohort {}, others for {}", entry.device,
                              drawn.cohort, *cohort));
    cohort = drawn.cohort;
  }
  return {};
}

}  // namespace gpusonde::fleet
