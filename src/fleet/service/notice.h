// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fleet/roles/report.h"
#include "fleet/service/description.h"

// Signed messages that parties leave with the aggregator for the others. Little-endian:
//   magic "GSN", kind u8, fleet id 32 bytes, epoch u32, sender u64, item u32, the payload,
//   an Ed25519 signature of the BLAKE2b-512 digest of all before it.
namespace gpusonde::fleet {

enum class NoticeKind : uint8_t {
  kExchange = 'x',    // of a decryptor: its public key for the enrolments of this first epoch
  kEnrolment = 'e',   // of a device, for its first epoch: its keys and its ticket (Enrolment)
  kCommitment = 'c',  // of a decryptor: to its part of the epoch's beacon
  kPart = 'p',        // of a decryptor: that part
  kAgreement = 'g',   // of a decryptor: the hash of all the epoch's lists
  kAnswer = 'a',      // of a decryptor: for the list `item` of the epoch, its hash and the slots
};

struct Notice {
  NoticeKind kind = NoticeKind::kExchange;
  uint32_t epoch = 0;
  uint64_t sender = 0;  // a device, or the number of a decryptor in the description
  uint32_t item = 0;
  std::vector<uint8_t> payload;

  bool operator==(const Notice&) const = default;
};

inline constexpr size_t kAnswerBytes = 32 + privacy::kReportSlots * sizeof(uint32_t);

std::vector<uint8_t> MakeNotice(const Notice& notice, const FleetId& fleet, const SigningKey& key);

// Checks everything but the signature: nullopt if the bytes are no notice of this fleet, or if the payload
// has another size than its kind's.
std::optional<Notice> ReadNotice(std::span<const uint8_t> bytes, const FleetId& fleet);

// Whether a notice that ReadNotice took is signed by its sender: by the decryptor that the description names,
// or by a device that the authority admitted.
bool IsBySender(std::span<const uint8_t> bytes, const Notice& notice, const Description& description,
                const FleetId& fleet);

// The payload of an enrolment: the device's keys, and its ticket's signature.
struct Enrolment {
  VerifyKey key{};
  std::array<uint8_t, 32> exchange{};
  std::array<uint8_t, kSignatureBytes> admission{};
};
std::vector<uint8_t> BytesOf(const Enrolment& enrolment);
// Of a notice of that kind.
Enrolment EnrolmentOf(const Notice& notice);

// Bytes of a payload of 32.
std::array<uint8_t, 32> Payload32(const Notice& notice);

}  // namespace gpusonde::fleet
