// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/release_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "fleet/privacy/byte_stream.h"

namespace gpusonde::fleet {
namespace {

constexpr uint64_t kReleaseMagic = 0x0131'454c'5246'5347;  // "GSFREL1" and 1
constexpr std::string_view kSuffix = ".release";
// A thousand lists have 16 MB.
constexpr size_t kMaxReleaseBytes = size_t{1} << 30;

std::string PathOf(const std::string& folder, uint32_t epoch) {
  return fmt::format("{}/{}{}", folder, epoch, kSuffix);
}

Release::List ReadList(privacy::ByteReader& in) {
  Release::List list;
  list.place = in.Read<uint32_t>();
  list.cohort = in.Read<uint32_t>();
  list.reports = in.Read<uint64_t>();
  list.answers = in.Read<uint32_t>();
  list.outcome = static_cast<Outcome>(std::min<uint8_t>(in.Read<uint8_t>(), kOutcomes - 1));
  const size_t slots = in.ReadCount(sizeof(uint32_t));
  list.slots.reserve(slots);
  for (size_t i = 0; i < slots; ++i) list.slots.push_back(static_cast<int32_t>(in.Read<uint32_t>()));
  return list;
}

}  // namespace

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kReleased:
      return "released";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kUnanswered:
      return "unanswered";
  }
  return "unknown";
}

Status WriteRelease(const std::string& folder, const Release& release) {
  privacy::ByteWriter out;
  out.Add(kReleaseMagic);
  out.Add(release.epoch);
  out.Add(release.devices);
  out.Add(release.expelled);
  for (const uint64_t count : release.verdicts) out.Add(count);
  out.Add(release.lists_too_small);
  out.Add(uint64_t{release.lists.size()});
  for (const Release::List& list : release.lists) {
    out.Add(list.place);
    out.Add(list.cohort);
    out.Add(list.reports);
    out.Add(list.answers);
    out.Add(static_cast<uint8_t>(list.outcome));
    out.Add(uint64_t{list.slots.size()});
    for (const int32_t slot : list.slots) out.Add(static_cast<uint32_t>(slot));
  }
  const privacy::SecretBytes bytes = out.Take();
  return WriteFileAtomically(PathOf(folder, release.epoch),
                             {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<Release> ReadRelease(const std::string& folder, uint32_t epoch) {
  const std::string path = PathOf(folder, epoch);
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxReleaseBytes));
  privacy::ByteReader in({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const bool is_release = in.Read<uint64_t>() == kReleaseMagic && in.Read<uint32_t>() == epoch;
  Release release;
  release.epoch = epoch;
  release.devices = in.Read<uint64_t>();
  release.expelled = in.Read<uint64_t>();
  for (uint64_t& count : release.verdicts) count = in.Read<uint64_t>();
  release.lists_too_small = in.Read<uint32_t>();
  constexpr size_t kListBytes = 29;
  const size_t lists = in.ReadCount(kListBytes);
  for (size_t i = 0; i < lists; ++i) {
    Release::List list = ReadList(in);
    const size_t slots = list.outcome == Outcome::kReleased ? privacy::kReportSlots : 0;
    if (list.slots.size() != slots)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: list {} has {} slots", path, i, list.slots.size()));
    release.lists.push_back(std::move(list));
  }
  if (!is_release || !in.IsComplete())
    return Fail(ErrorCode::kCorrupt, path + " is not a whole file of `gpusonde fleet aggregate`");
  return release;
}

Result<std::vector<uint32_t>> ListReleases(const std::string& folder) {
  std::vector<uint32_t> epochs;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    if (const std::optional<uint32_t> epoch = ParseNumber<uint32_t>(name); epoch.has_value())
      epochs.push_back(*epoch);
  }
  if (error) return Fail(ErrnoError(error.value(), "read " + folder));
  std::ranges::sort(epochs);
  return epochs;
}

}  // namespace gpusonde::fleet
