// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/kineto/names.h"

namespace gpusonde::importers::kineto {

// Removes events that are only counted (operators, flows, Python functions: most of a trace) from an array of
// events, so that only analysed events are parsed. Anything unusual stays, for the parser to judge. Not
// thread-safe.
class EventFilter {
 public:
  explicit EventFilter(Reading reading = Reading::kForAnalysis) : reading_(reading) {}

  // Bytes that may be read beyond the end of the result, as simdjson does.
  static constexpr size_t kPadding = 64;

  // Filters `events`, a JSON array whose elements end at `ends`. The result is an array too, valid until the
  // next call and while `events` is. Without `ends` nothing is removed.
  std::string_view Filter(const std::string& events, std::span<const uint32_t> ends);
  // The number of removed events.
  int64_t left_out() const { return left_out_; }
  // The offset in `events` of a byte of the result.
  size_t OriginOf(size_t at) const;

 private:
  // A run of consecutive elements that stay.
  struct Piece {
    size_t begin = 0;  // in `events`
    size_t end = 0;
    size_t to = 0;  // in the result
  };
  // Whether an event is only counted, and how many of its first bytes show that; 0: phase and category alone
  // don't show it, so it stays.
  struct Verdict {
    bool counted = false;
    size_t read = 0;
  };
  // A cache of event prefixes with their verdict. Events of a kind are written alike, so nearly all begin
  // with one of a few prefixes up to their category.
  struct Beginning {
    static constexpr size_t kMaxBytes = kPadding;
    std::array<char, kMaxBytes> bytes{};
    uint64_t mask = 0;  // bit i: byte i belongs to it
    bool counted = false;
  };
  static constexpr size_t kMaxBeginnings = 16;

  bool IsOnlyCounted(std::string_view event);
  Verdict Judge(std::string_view event) const;
  void Remember(std::string_view event, const Verdict& verdict);
  // Returns false if anything but commas and blanks lies between elements.
  bool FindPieces(std::string_view events, std::span<const uint32_t> ends);
  std::string_view PutTogether(std::string_view events);

  Reading reading_;
  std::vector<Beginning> beginnings_;
  std::vector<Piece> pieces_;
  std::string left_;
  int64_t left_out_ = 0;
};

}  // namespace gpusonde::importers::kineto
