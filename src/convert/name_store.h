// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analyze/temporary_file.h"
#include "base/result.h"

namespace gpusonde::convert {

// The names of a trace's events, numbered, in bounded memory: names beyond kMaxNames or kMaxBytes go to a
// temporary file and are not looked for again, so that equal ones may have different numbers. Not
// thread-safe.
class NameStore {
 public:
  static constexpr size_t kMaxNames = 200'000;
  static constexpr size_t kMaxBytes = size_t{32} << 20;
  // Longer names are cut: they are generated from data.
  static constexpr size_t kMaxNameBytes = size_t{64} << 10;

  // Errors of the temporary file are kept for status(); the number is then that of another name.
  uint32_t Add(std::string_view name);
  // Valid until the next call.
  std::string_view Get(uint32_t number);
  // Whether a number is always that of the same name.
  static bool IsUnique(uint32_t number) { return number < kMaxNames; }
  const Status& status() const { return status_; }

 private:
  // Names in the file begin at multiples of this, so that 32 bits number 60 GiB of them.
  static constexpr uint64_t kAlignment = 16;

  Result<uint32_t> Spill(std::string_view name);
  Status ReadSpilled(uint32_t number);

  std::deque<std::string> names_;  // a deque, so that keys of numbers_ stay valid
  std::unordered_map<std::string_view, uint32_t> numbers_;
  size_t bytes_ = 0;
  analyze::TemporaryFile file_;
  std::string read_;
  Status status_;
};

}  // namespace gpusonde::convert
