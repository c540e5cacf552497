// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/batch.h"

// The body of an agent's request to `serve`: encoded batches (spool/codec.h), each after its length as u32,
// little-endian.
namespace gpusonde::spool {

// Bounds on a request. A round's frame has at most some hundred kB; a frame that doesn't fit is dropped.
inline constexpr size_t kMaxUploadBytes = size_t{16} << 20;
inline constexpr size_t kMaxDecodedUploadBytes = size_t{64} << 20;

// Adds an encoded batch to a body.
void AppendToUpload(std::span<const std::byte> encoded, std::string& body);

// The batches of a body; safe on any bytes. Errors: kCorrupt, also for more than kMaxDecodedUploadBytes in
// total, with the number of the frame; kTooNew.
Result<std::vector<model::Batch>> DecodeUpload(std::string_view body);

}  // namespace gpusonde::spool
