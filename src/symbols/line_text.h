// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "symbols/dwarf_file.h"

// Source lines as text, as processes send them (symbols/line_protocol.h) and files keep them
// (symbols/line_cache.h): fields are separated by tabs, records by line feeds.
namespace gpusonde::symbols {

// Reads fields one after the other. After the first that isn't as asked for, failed() is true and what is
// returned means nothing.
class LineFields {
 public:
  explicit LineFields(std::string_view text) : rest_(text) {}

  bool AtEnd() const { return rest_.empty(); }
  size_t left() const { return rest_.size(); }  // bytes
  bool failed() const { return failed_; }
  std::string_view Text(char end) {
    const size_t size = std::min(rest_.find(end), rest_.size());
    failed_ |= size == rest_.size();
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(std::min(size + 1, rest_.size()));
    return text;
  }
  template <class T>
  T Number(char end) {
    const std::optional<T> value = ParseNumber<T>(Text(end));
    failed_ |= !value.has_value();
    return value.value_or(T{});
  }
  SourceFrame Frame() {
    SourceFrame frame{.function = {}, .file = {}, .line = Number<int32_t>('\t')};
    frame.first_line = Number<int32_t>('\t');
    frame.file = Text('\t');
    frame.function = Text('\n');
    return frame;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// Without line breaks and tabs of its own, and cut where it is very long.
std::string PlainText(std::string_view text);

// A line that LineFields::Frame reads.
std::string FrameText(const SourceFrame& frame);

}  // namespace gpusonde::symbols
