// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace gpusonde::flight_recorder {

// Text, or a part of one, that all copies share: a dump refers to the same text from any number of places.
class SharedText {
 public:
  SharedText() = default;
  explicit SharedText(std::shared_ptr<const std::string> whole)
      : whole_(std::move(whole)), text_(whole_ == nullptr ? std::string_view() : *whole_) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  SharedText(std::convertible_to<std::string_view> auto const& text)
      : SharedText(std::make_shared<const std::string>(std::string_view(text))) {}

  std::string_view view() const { return text_; }
  operator std::string_view() const { return text_; }  // NOLINT(google-explicit-constructor)
  bool empty() const { return text_.empty(); }
  // `part` is a part of this text.
  SharedText Part(std::string_view part) const {
    SharedText text = *this;
    text.text_ = part;
    return text;
  }

  friend bool operator==(const SharedText& a, const SharedText& b) { return a.text_ == b.text_; }
  friend std::strong_ordering operator<=>(const SharedText& a, const SharedText& b) {
    return a.text_ <=> b.text_;
  }

 private:
  std::shared_ptr<const std::string> whole_;
  std::string_view text_;
};

}  // namespace gpusonde::flight_recorder
