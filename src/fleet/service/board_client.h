// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/privacy/decryptor.h"

namespace gpusonde::fleet {

using Bytes = std::vector<uint8_t>;

// The reports of one place and cohort, as the aggregator lists them.
struct ListedReports {
  uint32_t place = 0;
  uint32_t cohort = 0;
  std::vector<privacy::ReportList::Entry> entries;
};

// The aggregator as devices and decryptors see it. Nothing it says is trusted: they check signatures, lists
// and draws themselves. Errors of every function: kUnavailable and kPermissionDenied (a token is missing or
// wrong): try again later; kNotFound: not there yet; kInvalidArgument: it never will be.
class BoardClient {
 public:
  BoardClient() = default;
  BoardClient(const BoardClient&) = delete;
  BoardClient& operator=(const BoardClient&) = delete;
  virtual ~BoardClient() = default;

  // The decryptors' notices of an epoch, but for answers.
  virtual Result<std::vector<Bytes>> Notices(uint32_t epoch) = 0;
  // The enrolments whose first epoch this is, once no more are taken.
  virtual Result<std::vector<Bytes>> Enrolments(uint32_t epoch) = 0;
  // The lists of an epoch, once no more reports are taken.
  virtual Result<std::vector<ListedReports>> Lists(uint32_t epoch) = 0;
  // Leaves a notice; the same one may be left any number of times. Durable on success.
  virtual Status PostNotice(std::span<const uint8_t> notice) = 0;
  // Sends a report, and returns the verdict's name. Durable once it is "accepted" or "duplicate".
  virtual Result<std::string> PostReport(std::span<const uint8_t> report) = 0;
};

// Of a step that found something not to be there yet there is nothing to say: a later one looks again.
inline Status UnlessNotYet(Status status) {
  return !status.has_value() && status.error().code == ErrorCode::kNotFound ? Status() : status;
}

// Byte strings one after the other, each after its length, and back. Errors: kCorrupt.
Bytes Join(std::span<const Bytes> parts);
Result<std::vector<Bytes>> Split(std::span<const uint8_t> joined);
// Lists as bytes, and back. Errors: kCorrupt.
Bytes BytesOf(std::span<const ListedReports> lists);
Result<std::vector<ListedReports>> ListsOf(std::span<const uint8_t> bytes);

}  // namespace gpusonde::fleet
