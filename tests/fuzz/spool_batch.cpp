// SPDX-License-Identifier: Apache-2.0
// An encoded batch. Odd inputs are compressed first, so that mutations reach the content of the zstd frame.
#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "model/batch.h"
#include "spool/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpusonde::spool::DecodeBatch;
  if (size == 0) return 0;
  auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<std::byte> compressed;
  if (data[0] % 2 == 1) {
    compressed.resize(ZSTD_compressBound(bytes.size()));
    const size_t length = ZSTD_compress(compressed.data(), compressed.size(), bytes.data(), bytes.size(), 1);
    if (ZSTD_isError(length) != 0) std::abort();
    bytes = std::span(compressed).first(length);
  }
  const auto batch = DecodeBatch(bytes);
  if (!batch.has_value()) return 0;
  if (!gpusonde::model::Validate(*batch).has_value()) std::abort();
  // Accepted input survives a round trip.
  const auto again = gpusonde::spool::EncodeBatch(*batch);
  if (!again.has_value()) std::abort();
  const auto decoded = DecodeBatch(*again);
  if (!decoded.has_value() || decoded->rows != batch->rows ||
      decoded->columns.size() != batch->columns.size())
    std::abort();
  return 0;
}
