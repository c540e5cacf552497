// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "fleet/privacy/bfv.h"
#include "fleet/privacy/byte_stream.h"
#include "fleet/privacy/masks.h"
#include "fleet/privacy/random.h"
#include "fleet/roles/report.h"

namespace gpusonde::fleet {

// The device's role. One report per epoch, the same bytes until they are acknowledged; keys advance to the
// next epoch as soon as a report is made, so that stolen keys can't open it later. Not thread-safe.
class Device {
 public:
  // `masks`: the keys shared with each decryptor, of one epoch.
  Device(uint64_t id, SigningKey signing, std::vector<privacy::MaskKey> masks)
      : id_(id), signing_(std::move(signing)), masks_(std::move(masks)) {}

  // Its state but for the signing key, which a file of its own keeps. Errors: kCorrupt, also without
  // keys.
  void Save(privacy::ByteWriter& out) const;
  static Result<Device> Load(SigningKey signing, privacy::ByteReader& in);

  uint64_t id() const { return id_; }
  // The first epoch that it may still report for; that before it, if the report is still to be acknowledged.
  uint32_t next_epoch() const { return next_epoch_; }
  std::span<const uint8_t> pending() const { return report_; }  // empty: all reports are acknowledged
  const VerifyKey& verify_key() const { return signing_.open(); }

  // The masked report; the same bytes, whatever the message, until that of this epoch is acknowledged.
  // kInvalidArgument if the epoch has been reported. The view is valid until the next call.
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
  // Whether the stored bytes must be sent again.
  Result<bool> IsRetry(uint32_t epoch) const;

  uint64_t id_;
  SigningKey signing_;
  std::vector<privacy::MaskKey> masks_;
  uint32_t next_epoch_ = 0;
  std::vector<uint8_t> report_;
};

}  // namespace gpusonde::fleet
