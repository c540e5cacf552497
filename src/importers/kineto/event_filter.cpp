// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/event_filter.h"

#include <emmintrin.h>

#include <algorithm>
#include <iterator>

namespace gpusonde::importers::kineto {
namespace {

// Tokenises an object, as far as it looks like those in most traces.
class Tokens {
 public:
  explicit Tokens(std::string_view text)
      : begin_(text.data()), at_(begin_), end_(text.data() + text.size()) {}

  size_t taken() const { return static_cast<size_t>(at_ - begin_); }
  // The next byte that isn't blank, without consuming it; 0 at the end.
  char Peek() {
    while (at_ != end_ && IsBlank(*at_)) ++at_;
    return at_ != end_ ? *at_ : '\0';
  }
  bool Take(char wanted) {
    if (Peek() != wanted) return false;
    ++at_;
    return true;
  }
  // A string's raw text, with escapes. Returns false if no complete string begins here.
  bool TakeString(std::string_view& text) {
    if (!Take('"')) return false;
    const char* const begin = at_;
    while (at_ < end_ && *at_ != '"') at_ += *at_ == '\\' ? 2 : 1;
    if (at_ >= end_) return false;
    text = {begin, at_++};
    return true;
  }
  // A number or literal.
  void PassScalar() {
    while (at_ != end_ && *at_ != ',' && *at_ != '}') ++at_;
  }

 private:
  const char* begin_;
  const char* at_;
  const char* end_;
};

}  // namespace

EventFilter::Verdict EventFilter::Judge(std::string_view event) const {
  Tokens tokens(event);
  if (!tokens.Take('{')) return {};
  do {
    std::string_view key, value;
    if (!tokens.TakeString(key) || !tokens.Take(':')) return {};
    const char first = tokens.Peek();
    if (first == '"') {
      if (!tokens.TakeString(value)) return {};
      const bool in_detail = reading_ == Reading::kAll && (value == "M" || value == "i");
      if (key == "ph" && value != "X" && value != "B" && !in_detail)
        return {.counted = true, .read = tokens.taken()};
      if (key == "cat")
        return {.counted = kineto::IsOnlyCounted(CategoryOf(value), reading_), .read = tokens.taken()};
    } else if (first == '{' || first == '[' || key == "cat" || key == "ph") {
      return {};
    } else {
      tokens.PassScalar();
    }
  } while (tokens.Take(','));
  return {};
}

void EventFilter::Remember(std::string_view event, const Verdict& verdict) {
  if (verdict.read == 0 || verdict.read > Beginning::kMaxBytes || beginnings_.size() == kMaxBeginnings)
    return;
  Beginning& beginning = beginnings_.emplace_back();
  event.copy(beginning.bytes.data(), verdict.read);
  beginning.mask = ~uint64_t{0} >> (Beginning::kMaxBytes - verdict.read);
  beginning.counted = verdict.counted;
}

bool EventFilter::IsOnlyCounted(std::string_view event) {
  for (const Beginning& beginning : beginnings_) {
    uint64_t equal = 0;
    for (size_t i = 0; i < Beginning::kMaxBytes; i += sizeof(__m128i)) {
      const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(event.data() + i));
      const __m128i known = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&beginning.bytes[i]));
      equal |= uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(here, known)))} << i;
    }
    if ((equal & beginning.mask) == beginning.mask) return beginning.counted;
  }
  const Verdict verdict = Judge(event);
  Remember(event, verdict);
  return verdict.counted;
}

namespace {

// Where the element after `at` begins; the end of the text if anything but blanks, and the expected comma, is
// between.
size_t BeginBehind(std::string_view events, size_t at, bool comma) {
  while (at < events.size() && (IsBlank(events[at]) || (comma && events[at] == ','))) {
    comma = comma && events[at] != ',';
    ++at;
  }
  return comma ? events.size() : at;
}

}  // namespace

bool EventFilter::FindPieces(std::string_view events, std::span<const uint32_t> ends) {
  size_t at = 1;
  bool follows = false;  // on an element that stays
  for (const uint32_t end : ends) {
    const size_t begin = BeginBehind(events, at, at > 1);
    if (begin >= end) return false;
    if (IsOnlyCounted(events.substr(begin, end - begin))) {
      ++left_out_;
      follows = false;
    } else if (follows) {
      pieces_.back().end = end;
    } else {
      pieces_.push_back({.begin = begin, .end = end});
      follows = true;
    }
    at = end;
  }
  return BeginBehind(events, at, false) + 1 == events.size() && events.back() == ']';
}

std::string_view EventFilter::PutTogether(std::string_view events) {
  left_.reserve(events.size() + kPadding);
  left_ = '[';
  for (Piece& piece : pieces_) {
    if (left_.size() > 1) left_ += ',';
    piece.to = left_.size();
    left_ += events.substr(piece.begin, piece.end - piece.begin);
  }
  left_ += ']';
  return left_;
}

std::string_view EventFilter::Filter(const std::string& events, std::span<const uint32_t> ends) {
  pieces_.clear();
  left_out_ = 0;
  if (events.capacity() < events.size() + kPadding) {  // never what EventSplitter gives
    left_.reserve(events.size() + kPadding);
    return left_ = events;
  }
  if (FindPieces(events, ends) && left_out_ > 0) return PutTogether(events);
  pieces_.clear();
  left_out_ = 0;
  return events;
}

size_t EventFilter::OriginOf(size_t at) const {
  const auto behind = std::ranges::upper_bound(pieces_, at, {}, &Piece::to);
  if (behind == pieces_.begin()) return at;
  const Piece& piece = *std::prev(behind);
  return piece.begin + (at - piece.to);
}

}  // namespace gpusonde::importers::kineto
