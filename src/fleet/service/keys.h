// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "fleet/privacy/wiped.h"
#include "fleet/roles/report.h"
#include "fleet/service/description.h"

// Files with secrets of parties, readable for their owner only.
namespace gpusonde::fleet {

using Signature = std::array<uint8_t, kSignatureBytes>;

// A device's number as people see it: 16 hex digits.
std::string DeviceName(uint64_t device);

// Makes the signing key of a decryptor or of the authority in a new file and returns its public key. Errors:
// kInvalidArgument if the file exists, as a key that is lost can't be made again; those of the file system.
Result<VerifyKey> MakeKeyFile(const std::string& path);
// Errors: kInvalidArgument for another content; those of the file system.
Result<SigningKey> ReadKeyFile(const std::string& path);

// The right to enrol one device, and its signing key. Whoever has it is that device.
struct Ticket {
  FleetId fleet{};
  uint64_t device = 0;
  privacy::Wiped<uint8_t> seed{privacy::kKeyBytes};  // of the device's signing key
  Signature signature{};                             // of the authority
};

// Signs a ticket whose other parts are there.
void SignTicket(Ticket& ticket, const SigningKey& authority);
// A ticket for a device whose number and key are drawn at random.
Ticket MakeTicket(const FleetId& fleet, const SigningKey& authority);
// Writes a new file; errors as for MakeKeyFile.
Status WriteTicket(const std::string& path, const Ticket& ticket);
// Errors: kInvalidArgument for another content.
Result<Ticket> ReadTicket(const std::string& path);

// Whether the authority gave this device a ticket with this key.
bool IsAdmitted(const FleetId& fleet, uint64_t device, const VerifyKey& key, const Signature& signature,
                const VerifyKey& authority);

// Creates a file that only its owner reads, durable on return. If that fails, nothing remains of it. Errors:
// kInvalidArgument if it exists; those of the file system.
Status WriteSecretFile(const std::string& path, std::string_view content);

}  // namespace gpusonde::fleet
