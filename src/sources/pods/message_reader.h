// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace gpusonde::pods {

// Reads the fields of a protobuf message (https://protobuf.dev/programming-guides/encoding) where they lie.
// protobuf's generated classes would build an object of 50 bytes or more for each empty submessage of two, so
// that a hostile reply of 16 MB would take some 500 MB. Fields of other numbers or types are the caller's to
// ignore. Not thread-safe.
class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : rest_(message) {}

  // Moves to the next field; false at the end, and where the message is malformed.
  bool Next();

  uint32_t field() const { return field_; }
  // Of a text, a list or a message inside this one; empty for fields of other types.
  std::string_view bytes() const { return bytes_; }
  // Of an integer, an enumeration or a truth value; 0 for fields of other types.
  uint64_t number() const { return number_; }
  // Whether reading ended before the message did.
  bool malformed() const { return malformed_; }

 private:
  bool ReadNumber(uint64_t& number);
  bool Skip(uint64_t bytes);

  std::string_view rest_;
  uint32_t field_ = 0;
  std::string_view bytes_;
  uint64_t number_ = 0;
  bool malformed_ = false;
};

}  // namespace gpusonde::pods
