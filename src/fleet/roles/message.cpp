// SPDX-License-Identifier: Apache-2.0
#include "fleet/roles/message.h"

#include <array>

#include "fleet/privacy/constant_time.h"

namespace gpusonde::fleet {
namespace {

uint64_t MaskOf(bool is_true) { return privacy::Opaque(uint64_t{0} - uint64_t{is_true}); }

// number / 61, without the division instruction, whose time depends on its operands: exact below 2^16
// (Granlund, Montgomery 1994: ⌈2^22/61⌉ = 68,760, its error 68,760·61 - 2^22 = 56 < 2^22/2^16 = 64).
uint64_t PageOf(uint64_t application) {
  static_assert(kApplicationsPerPage == 61);
  return (application * 68'760) >> 22;
}

}  // namespace

std::vector<uint32_t> MessageOf(const Finding& finding, const Assignment& assignment, const Layout& layout,
                                const Row& row) {
  std::vector<uint32_t> message(privacy::kReportSlots);
  if (assignment.place == layout.signatures_place()) {
    constexpr std::array<uint32_t, 1> kAll = {privacy::kReportWeight};
    privacy::WriteRow(message, finding.signature, kAll);
    return message;
  }
  const uint64_t page = PageOf(finding.application);
  uint64_t place = privacy::Select(privacy::MaskEqual(page, assignment.page),
                                   finding.application - page * kApplicationsPerPage, kElsewhereRow);
  place = privacy::Select(MaskOf(finding.is_known), place, kUnknownRow);
  place = privacy::Select(MaskOf(finding.is_busy), place, kIdleRow);
  privacy::WriteRow(message, place, row);
  return message;
}

}  // namespace gpusonde::fleet
