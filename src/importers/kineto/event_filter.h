// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::importers::kineto {

// Leaves the events that are only counted (operators, flows, Python functions: most of a trace) out of an
// array of events, so that nothing but what is analysed has to be parsed. Whatever is unusual stays in, for
// the parser to judge. Not thread-safe.
class EventFilter {
 public:
  // Bytes with which what is left may be read beyond its end, as simdjson does.
  static constexpr size_t kPadding = 64;

  // Of `events`, a JSON array whose elements end at `ends`, what is left; again an array, valid until the
  // next call and while `events` is. Without `ends` that is everything.
  std::string_view Filter(const std::string& events, std::span<const uint32_t> ends);
  // How many events that left out.
  int64_t left_out() const { return left_out_; }
  // Where in `events` a byte of what is left lies.
  size_t OriginOf(size_t at) const;

 private:
  // A row of elements that stay.
  struct Piece {
    size_t begin = 0;  // in `events`
    size_t end = 0;
    size_t to = 0;  // in what is left
  };
  // Whether an event is only counted, and how many of its first bytes say so; 0: that can't be told from its
  // phase and category alone, and so it isn't.
  struct Verdict {
    bool counted = false;
    size_t read = 0;
  };
  // What events began with that were judged already. Events of a kind are written alike, so that nearly all
  // begin with one of a few rows of bytes, up to their category.
  struct Beginning {
    static constexpr size_t kMaxBytes = kPadding;
    std::array<char, kMaxBytes> bytes{};
    uint64_t mask = 0;  // bit i: byte i belongs to it
    bool counted = false;
  };
  static constexpr size_t kMaxBeginnings = 16;

  bool IsOnlyCounted(std::string_view event);
  static Verdict Judge(std::string_view event);
  void Remember(std::string_view event, const Verdict& verdict);
  // False where something else than commas and blanks lies between elements.
  bool FindPieces(std::string_view events, std::span<const uint32_t> ends);
  std::string_view PutTogether(std::string_view events);

  std::vector<Beginning> beginnings_;
  std::vector<Piece> pieces_;
  std::string left_;
  int64_t left_out_ = 0;
};

}  // namespace gpusonde::importers::kineto
