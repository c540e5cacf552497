// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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

// How far a day of rows may lie from today: agents send what waited in their spool, and clocks differ a
// little. A day in the future would make retention delete the others.
inline constexpr int64_t kMaxDaysBehind = 366, kMaxDaysAhead = 1;

// Whether rows of a day, in days since the epoch, can have been recorded by a clock that was right if it is
// `today` now.
constexpr bool IsPlausibleDay(int64_t day, int64_t today) {
  return day >= today - kMaxDaysBehind && day <= today + kMaxDaysAhead;
}

// "2026-11-28", of days since the epoch.
std::string FormatDay(int64_t day);

// Adds an encoded batch to a body.
void AppendToUpload(std::span<const std::byte> encoded, std::string& body);

// The batches of a body; safe on any bytes. Errors: kCorrupt, also for more than kMaxDecodedUploadBytes in
// total, with the number of the frame; kTooNew.
Result<std::vector<model::Batch>> DecodeUpload(std::string_view body);

// The rows of all frames of a body of this program's own, also of frames that are too large for DecodeUpload:
// they are decoded one after the other. Those of frames that can't be decoded are unknown and count as none.
int64_t CountRows(std::string_view body);

}  // namespace gpusonde::spool
