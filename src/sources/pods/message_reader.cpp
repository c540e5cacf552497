// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/message_reader.h"

namespace gpusonde::pods {
namespace {

enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
constexpr uint64_t kMaxField = (1 << 29) - 1;

}  // namespace

bool MessageReader::Next() {
  bytes_ = {};
  number_ = 0;
  if (rest_.empty() || malformed_) return false;
  malformed_ = true;  // until the field is read
  uint64_t tag = 0;
  if (!ReadNumber(tag) || tag >> 3 == 0 || tag >> 3 > kMaxField) return false;
  field_ = static_cast<uint32_t>(tag >> 3);
  uint64_t length = 0;
  switch (tag & 7) {
    case kVarint:
      malformed_ = !ReadNumber(number_);
      break;
    case kFixed64:
      malformed_ = !Skip(8);
      break;
    case kLength:
      if (!ReadNumber(length) || length > rest_.size()) return false;
      bytes_ = rest_.substr(0, length);
      malformed_ = !Skip(length);
      break;
    case kFixed32:
      malformed_ = !Skip(4);
      break;
    default:  // groups, which proto3 doesn't have
      return false;
  }
  return !malformed_;
}

bool MessageReader::ReadNumber(uint64_t& number) {
  number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    number |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool MessageReader::Skip(uint64_t bytes) {
  if (bytes > rest_.size()) return false;
  rest_.remove_prefix(bytes);
  return true;
}

}  // namespace gpusonde::pods
