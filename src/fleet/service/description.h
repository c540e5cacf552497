// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/catalog.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/roles/report.h"
#include "fleet/sampling.h"

namespace gpusonde::fleet {

using FleetId = std::array<uint8_t, 32>;

// What all parties of a fleet must agree on: who may decrypt and enrol, and by which rules. A JSON file that
// `gpusonde fleet init` makes and every party keeps; the aggregator is not trusted to tell it.
struct Description {
  struct Decryptor {
    std::string name;
    VerifyKey key{};
  };

  std::string name;
  // An epoch, of measurement and of release: from EPOCH·period_s to (EPOCH+1)·period_s, in Unix time.
  uint32_t period_s = 3600;
  uint32_t groups = 8;   // of characteristics, 1 to 8
  uint32_t cohorts = 8;  // of each group and page
  privacy::MaskDecryptor::Rules rules;
  VerifyKey authority{};  // signs tickets (keys.h)
  std::vector<Decryptor> decryptors;
  Catalog catalog;

  Layout layout() const;
  // BLAKE2b-256 of ToJson: a part of all that is signed, so that nothing of one fleet is accepted in another,
  // nor after a rule was changed.
  FleetId Id() const;
};

inline constexpr size_t kMaxDecryptors = 16;

std::string ToJson(const Description& description);
// Errors: kInvalidArgument with what is wrong; kTooNew.
Result<Description> ParseDescription(std::string_view json);
// As ParseDescription, with the path.
Result<Description> ReadDescription(const std::string& path);

// Whether `text` is as many bytes in hex, which are written to `bytes`.
bool FromHex(std::string_view text, std::span<uint8_t> bytes);

}  // namespace gpusonde::fleet
