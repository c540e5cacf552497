// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "fleet/roles/report.h"
#include "privacy/bfv.h"
#include "privacy/masks.h"
#include "privacy/random.h"

namespace gpusonde::fleet {

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
