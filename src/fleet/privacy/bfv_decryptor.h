// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "base/result.h"
#include "fleet/privacy/bfv.h"
#include "fleet/privacy/decryptor.h"

namespace gpusonde::privacy {

// A holder of a share of the joint key, for reports as BFV ciphertexts (Penrose's way,
// docs/fleet/privacy.md). It enforces one answer per list and one list per report. It can't check that
// ciphertexts are well-formed, and a malformed one exposes the key (bfv_test.cpp): for honest devices and
// aggregators only. Not thread-safe.
class BfvDecryptor {
 public:
  // More would overflow the plaintext modulus 2^28, and their noise could exceed q/2t.
  static constexpr uint64_t kMaxReports = uint64_t{1} << 17;

  // `secret`: the share and the smudging are derived from it.
  BfvDecryptor(uint64_t min_reports, KeyBytes secret);

  // The share's public key under the common `a` of all shares.
  PublicKey MakePublic(const Evaluated& a);

  // This share's part of the decryption of a list's sum of ciphertexts. The same list gets the same answer
  // again. Errors: kInvalidArgument for fewer reports than the minimum or more than kMaxReports;
  // kPermissionDenied for a report that was answered for in another list, or another sum for the same list.
  Result<Polynomial> Answer(const ReportList& list, const Ciphertext& sum);

  // Forgets answers for epochs before this one, for which requests are refused.
  void Forget(uint32_t before_epoch);

 private:
  uint64_t min_reports_;
  Wiped<uint8_t> secret_;
  Random random_;
  SecretKey share_;
  std::map<uint32_t, std::unordered_map<uint64_t, ListHash>> spent_;  // by epoch and device
  std::map<uint32_t, std::map<ListHash, ListHash>> answered_;         // by epoch and list: the sum's hash
};

}  // namespace gpusonde::privacy
