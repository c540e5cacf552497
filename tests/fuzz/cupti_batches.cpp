// SPDX-License-Identifier: Apache-2.0
// Batches of the inject library from a hostile process. The input is a sequence of batches, each preceded by
// a two-byte length; magic, version and size are corrected, so that mutations reach the records.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <variant>
#include <vector>

#include "sources/cupti/decoder.h"
#include "wire/gpu_event.h"

namespace {

constexpr int32_t kPid = 4711;

void CheckEvent(const gpusonde::cupti::Event& event) {
  if (event.pid != kPid) std::abort();
  if (const auto* call = std::get_if<gpusonde::cupti::Call>(&event.what))
    if (!std::isfinite(call->probability) || call->probability <= 0 || call->probability > 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gpusonde::cupti::Decoder decoder;
  auto rest = std::as_bytes(std::span(data, size));
  while (rest.size() > 2) {
    const size_t wanted = std::to_integer<size_t>(rest[0]) | std::to_integer<size_t>(rest[1]) << 8;
    rest = rest.subspan(2);
    std::vector<std::byte> batch(rest.begin(),
                                 rest.begin() + static_cast<ptrdiff_t>(std::min(wanted, rest.size())));
    rest = rest.subspan(batch.size());
    if (batch.size() >= sizeof(gpusonde_gpu_batch)) {
      gpusonde_gpu_batch header;
      std::memcpy(&header, batch.data(), sizeof header);
      header.magic = GPUSONDE_GPU_MAGIC;
      header.version = GPUSONDE_GPU_VERSION;
      header.bytes = static_cast<uint32_t>(batch.size());
      std::memcpy(batch.data(), &header, sizeof header);
    }
    decoder.Decode({.pid = kPid, .tid = 0, .stack = {}, .stack_taken = false}, batch, CheckEvent);
  }
  decoder.Forget(kPid);
  const auto drops = decoder.DrainDrops();
  for (size_t reason = 0; reason < gpusonde::model::kDropReasons.size(); ++reason)
    if (drops.Of(static_cast<gpusonde::model::DropReason>(reason)) < 0) std::abort();
  return 0;
}
