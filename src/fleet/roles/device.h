// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "fleet/histogram.h"
#include "fleet/roles/report.h"
#include "fleet/sampling.h"
#include "privacy/bfv.h"
#include "privacy/masks.h"
#include "privacy/random.h"

namespace gpusonde::fleet {

inline constexpr uint32_t kApplicationsPerPage = 61;
// The rows after the applications'.
inline constexpr uint32_t kIdleRow = 61;
inline constexpr uint32_t kUnknownRow = 62;
inline constexpr uint32_t kElsewhereRow = 63;

// What a device found out about itself in an epoch.
struct Finding {
  bool busy = false;
  std::optional<uint32_t> application;  // in the catalog; none: unknown, or idle
  uint32_t signature = 0;               // of an unknown application, else 0 (unknown.h)
};

// The 4,096 slots that a device reports for its place: zero but for the row that the finding says, or the
// bucket of its unknown's signature. Takes the same time for every finding of a page.
std::vector<uint32_t> MessageOf(const Finding& finding, const Assignment& assignment, const Layout& layout,
                                const Row& row);

// The device's part. One report an epoch, the same bytes until they are acknowledged; keys go on to the next
// epoch as soon as a report is made, so that nobody who takes them later can open it. Not thread-safe.
class Device {
 public:
  // `masks`: the keys shared with each decryptor, of one epoch.
  Device(uint64_t id, SigningKey signing, std::vector<privacy::MaskKey> masks)
      : id_(id), signing_(std::move(signing)), masks_(std::move(masks)) {}

  uint64_t id() const { return id_; }
  const VerifyKey& verify_key() const { return signing_.open(); }

  // The masked report. While the last one isn't acknowledged and is of this epoch, the same bytes, whatever
  // the message. kInvalidArgument for an epoch that was reported for. The view is good until the next call.
  Result<std::span<const uint8_t>> ReportMasked(uint32_t epoch, uint32_t place, privacy::Slots message,
                                                privacy::Random& random);
  // The same as a BFV ciphertext under the decryptors' joint key.
  Result<std::span<const uint8_t>> ReportBfv(uint32_t epoch, uint32_t place, privacy::Slots message,
                                             const privacy::PublicKey& joint, privacy::Random& random);

  void Acknowledge() {
    report_.clear();
    report_.shrink_to_fit();
  }

 private:
  // True when the stored bytes are to be sent again.
  Result<bool> IsRetry(uint32_t epoch) const;

  uint64_t id_;
  SigningKey signing_;
  std::vector<privacy::MaskKey> masks_;
  uint32_t next_epoch_ = 0;
  std::vector<uint8_t> report_;
};

}  // namespace gpusonde::fleet
