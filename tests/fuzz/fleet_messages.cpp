// SPDX-License-Identifier: Apache-2.0
// What the parties of a fleet leave with each other: signed notices, and answers of an aggregator that nobody
// trusts.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "fleet/service/board_client.h"
#include "fleet/service/notice.h"
#include "fleet/service/testing/fleet.h"

namespace {

void ReadAsNotice(std::span<const uint8_t> bytes) {
  using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
  static const fleet::Description description = fleet::testing::SmallFleet(2);
  static const fleet::FleetId id = description.Id();
  const auto notice = fleet::ReadNotice(bytes, id);
  if (!notice.has_value()) return;
  static_cast<void>(fleet::Payload32(*notice));
  static_cast<void>(fleet::IsBySender(bytes, *notice, description, id));
  if (notice->kind == fleet::NoticeKind::kEnrolment &&
      BytesOf(fleet::EnrolmentOf(*notice)) != notice->payload)
    std::abort();
  // All but the signature.
  const auto made = fleet::MakeNotice(*notice, id, fleet::testing::KeyOf(1));
  const size_t is_signed = bytes.size() - fleet::kSignatureBytes;
  if (made.size() != bytes.size() ||
      !std::ranges::equal(std::span(made).first(is_signed), bytes.first(is_signed)))
    std::abort();
}

void ReadAsLists(std::span<const uint8_t> bytes) {
  using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
  const auto lists = fleet::ListsOf(bytes);
  if (!lists.has_value()) return;
  if (!std::ranges::equal(fleet::BytesOf(*lists), bytes)) std::abort();
  for (const fleet::ListedReports& list : *lists) {
    const auto created = privacy::ReportList::Create(1, list.place, list.entries);
    if (created.has_value() && created->entries().size() != list.entries.size()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  ReadAsNotice(bytes);
  ReadAsLists(bytes);
  const auto parts = gpusonde::fleet::Split(bytes);
  if (!parts.has_value()) return 0;
  if (!std::ranges::equal(gpusonde::fleet::Join(*parts), bytes)) std::abort();
  for (const gpusonde::fleet::Bytes& part : *parts) ReadAsNotice(part);
  return 0;
}
