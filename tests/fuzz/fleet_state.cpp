// SPDX-License-Identifier: Apache-2.0
// The saved states of a fleet's devices and decryptors. The first byte says which.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fleet/privacy/decryptor.h"
#include "fleet/roles/device.h"

namespace {

using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own

void LoadDevice(privacy::ByteReader in, std::span<const uint8_t> bytes) {
  const std::vector<uint8_t> seed(privacy::kKeyBytes);
  const auto device = fleet::Device::Load(fleet::SigningKey(privacy::KeyBytes(seed)), in);
  if (!device.has_value()) return;
  privacy::ByteWriter out;
  device->Save(out);
  if (!std::ranges::equal(out.Take(), bytes.first(bytes.size() - in.left()))) std::abort();
}

void LoadDecryptor(privacy::ByteReader in) {
  // So little budget that it is computed at once.
  constexpr privacy::MaskDecryptor::Rules kRules = {.epsilon = 1e-9};
  const auto decryptor = privacy::MaskDecryptor::Load(kRules, in);
  if (!decryptor.has_value()) return;
  // Devices are in no order, and those that are there twice are kept once.
  privacy::ByteWriter out;
  decryptor->Save(out);
  const privacy::SecretBytes saved = out.Take();
  privacy::ByteReader again_in(saved);
  const auto again = privacy::MaskDecryptor::Load(kRules, again_in);
  if (!again.has_value() || !again_in.IsComplete()) std::abort();
  privacy::ByteWriter again_out;
  again->Save(again_out);
  if (again_out.Take().size() != saved.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::span(data, size).subspan(1);
  if (data[0] == 'd') LoadDevice(privacy::ByteReader(bytes), bytes);
  if (data[0] == 'm') LoadDecryptor(privacy::ByteReader(bytes));
  return 0;
}
