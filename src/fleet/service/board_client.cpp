// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/board_client.h"

#include <utility>

#include "fleet/privacy/byte_stream.h"

namespace gpusonde::fleet {
namespace {

constexpr size_t kEntryBytes = sizeof(uint64_t) + sizeof(privacy::Salt);

Bytes Plain(const privacy::SecretBytes& bytes) { return {bytes.begin(), bytes.end()}; }

std::unexpected<Error> CutOff() {
  return Fail(ErrorCode::kCorrupt, "the aggregator's answer is cut off, or isn't one");
}

}  // namespace

Bytes Join(std::span<const Bytes> parts) {
  privacy::ByteWriter out;
  out.Add(uint64_t{parts.size()});
  for (const Bytes& part : parts) out.AddWithLength(part);
  return Plain(out.Take());
}

Result<std::vector<Bytes>> Split(std::span<const uint8_t> joined) {
  privacy::ByteReader in(joined);
  std::vector<Bytes> parts(in.ReadCount(sizeof(uint64_t)));
  for (Bytes& part : parts) {
    const std::span<const uint8_t> bytes = in.ReadWithLength();
    part.assign(bytes.begin(), bytes.end());
  }
  if (!in.IsComplete()) return CutOff();
  return parts;
}

Bytes BytesOf(std::span<const ListedReports> lists) {
  privacy::ByteWriter out;
  out.Add(uint64_t{lists.size()});
  for (const ListedReports& list : lists) {
    out.Add(list.place);
    out.Add(list.cohort);
    out.Add(uint64_t{list.entries.size()});
    for (const privacy::ReportList::Entry& entry : list.entries) {
      out.Add(entry.device);
      out.Add(std::span<const uint8_t>(entry.salt));
    }
  }
  return Plain(out.Take());
}

Result<std::vector<ListedReports>> ListsOf(std::span<const uint8_t> bytes) {
  privacy::ByteReader in(bytes);
  std::vector<ListedReports> lists(in.ReadCount(2 * sizeof(uint64_t)));
  for (ListedReports& list : lists) {
    list.place = in.Read<uint32_t>();
    list.cohort = in.Read<uint32_t>();
    list.entries.resize(in.ReadCount(kEntryBytes));
    for (privacy::ReportList::Entry& entry : list.entries) {
      entry.device = in.Read<uint64_t>();
      in.Read(entry.salt);
    }
  }
  if (!in.IsComplete()) return CutOff();
  return lists;
}

}  // namespace gpusonde::fleet
