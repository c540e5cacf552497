// SPDX-License-Identifier: Apache-2.0
#include "importers/activities/nccl_payloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>

#include "importers/sqlite/for_each_row.h"

namespace gpusonde::importers::activities {
namespace {

// Names of entries.
constexpr std::string_view kCommunicatorEntry = "NCCL communicator ID";
constexpr std::string_view kRanksEntry = "No. of ranks";
constexpr std::string_view kSizeEntry = "Message size [bytes]";

constexpr size_t kHeaderBytes = 32;
// Layouts of NCCL have at most seven entries of eight bytes; more of them than this is no layout of NCCL.
constexpr int64_t kMaxPayloadBytes = 4'096;
constexpr size_t kMaxLayouts = 1'024;

// A little-endian number, as on all machines that Nsight Systems runs on.
template <class Number>
std::optional<Number> NumberAt(std::string_view bytes, size_t offset) {
  Number number = 0;
  if (bytes.size() < sizeof number || offset > bytes.size() - sizeof number) return std::nullopt;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

// The whole number of a key of a flat JSON object, also as a text or with commas between thousands.
std::optional<uint64_t> JsonNumber(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at == 0 || text[at - 1] != '"' || text.substr(at + key.size(), 1) != "\"") continue;
    std::string_view value = text.substr(at + key.size() + 1);
    value.remove_prefix(std::min(value.find_first_not_of(" \t\n\r:\""), value.size()));
    uint64_t number = 0;
    bool has_digits = false;
    for (const char c : value) {
      if (c == ',' && has_digits) continue;
      if (c < '0' || c > '9') break;
      if (__builtin_mul_overflow(number, uint64_t{10}, &number) ||
          __builtin_add_overflow(number, static_cast<uint64_t>(c - '0'), &number))
        return std::nullopt;
      has_digits = true;
    }
    return has_digits ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

// Ranks of a communicator, which are no more than an int holds.
int64_t ValidRanks(int64_t ranks) {
  return ranks > 0 && ranks <= std::numeric_limits<int32_t>::max() ? ranks : 0;
}

int64_t ValidBytes(uint64_t bytes) {
  return bytes <= static_cast<uint64_t>(Message::kMaxBytes) ? static_cast<int64_t>(bytes) : 0;
}

}  // namespace

Result<NcclPayloads> NcclPayloads::Read(const sqlite::Database& database) {
  NcclPayloads payloads;
  constexpr std::array<std::string_view, 4> kColumns = {"domainId", "schemaId", "name", "offset"};
  TRY(sqlite::ForEachRow(
      database, "NVTX_PAYLOAD_SCHEMA_ENTRIES", kColumns, [&](std::span<const sqlite::Cell> cells) {
        const int64_t offset = cells[3].is_integer() ? cells[3].integer : 0;  // null: at the beginning
        if (!cells[0].is_integer() || !cells[1].is_integer() || offset < 0 || offset > kMaxPayloadBytes)
          return;
        const std::string_view name = cells[2].bytes;
        if (name != kCommunicatorEntry && name != kRanksEntry && name != kSizeEntry) return;
        const std::pair key(static_cast<uint64_t>(cells[0].integer), static_cast<uint64_t>(cells[1].integer));
        if (payloads.layouts_.size() == kMaxLayouts && !payloads.layouts_.contains(key)) return;
        Layout& layout = payloads.layouts_[key];
        if (name == kCommunicatorEntry)
          layout.communicator = static_cast<size_t>(offset);
        else if (name == kRanksEntry)
          layout.ranks = static_cast<size_t>(offset);
        else
          layout.bytes = static_cast<size_t>(offset);
      }));
  std::erase_if(payloads.layouts_, [](const auto& entry) { return !entry.second.communicator.has_value(); });
  return payloads;
}

bool NcclPayloads::IsNccl(int64_t domain) const {
  const auto first = layouts_.lower_bound({static_cast<uint64_t>(domain), 0});
  return first != layouts_.end() && first->first.first == static_cast<uint64_t>(domain);
}

std::optional<NcclPayload> NcclPayloads::DecodeBytes(std::string_view bytes) const {
  const auto domain = NumberAt<uint32_t>(bytes, 0);
  const auto number = NumberAt<uint32_t>(bytes, 8);
  const auto size = NumberAt<uint64_t>(bytes, 16);
  if (!size.has_value() || bytes.size() < kHeaderBytes) return std::nullopt;
  const auto found = layouts_.find({*domain, *number});
  if (found == layouts_.end()) return std::nullopt;
  std::string_view payload = bytes.substr(kHeaderBytes);
  payload = payload.substr(0, std::min<uint64_t>(*size, payload.size()));
  const Layout& layout = found->second;
  const auto communicator = NumberAt<uint64_t>(payload, *layout.communicator);
  if (!communicator.has_value()) return std::nullopt;
  NcclPayload decoded{.communicator = *communicator, .is_operation = layout.bytes.has_value()};
  if (layout.bytes.has_value())
    decoded.bytes = ValidBytes(NumberAt<uint64_t>(payload, *layout.bytes).value_or(0));
  if (layout.ranks.has_value())
    decoded.ranks = ValidRanks(NumberAt<int32_t>(payload, *layout.ranks).value_or(0));
  return decoded;
}

std::optional<NcclPayload> NcclPayloads::DecodeJson(std::string_view text) {
  const auto communicator = JsonNumber(text, kCommunicatorEntry);
  if (!communicator.has_value()) return std::nullopt;
  const uint64_t ranks = JsonNumber(text, kRanksEntry).value_or(0);
  const auto bytes = JsonNumber(text, kSizeEntry);
  return NcclPayload{.communicator = *communicator,
                     .ranks = ValidRanks(static_cast<int64_t>(std::min<uint64_t>(ranks, kMaxTimeNs))),
                     .is_operation = bytes.has_value(),
                     .bytes = ValidBytes(bytes.value_or(0))};
}

ProcessGroup GroupOfCommunicator(const NcclPayload& payload) {
  // A mixing step of SplitMix64, so that ids that differ in few bits get different numbers.
  uint64_t identity = payload.communicator + 0x9E3779B97F4A7C15;
  identity = (identity ^ (identity >> 30)) * 0xBF58476D1CE4E5B9;
  identity = (identity ^ (identity >> 27)) * 0x94D049BB133111EB;
  identity ^= identity >> 31;
  return {.identity = std::max<uint64_t>(identity, 1),
          .size = payload.ranks,
          .numbered = false,
          .label = fmt::format("communicator {:016x}", payload.communicator)};
}

}  // namespace gpusonde::importers::activities
