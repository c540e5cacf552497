// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/utf8.h"

namespace gpusonde {
namespace {

// Whether a byte needs no escape inside quotes.
bool IsPlain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t plain = static_cast<size_t>(std::ranges::find_if_not(text, IsPlain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (const char c = text.front(); c == '"' || c == '\\') {
      out += '\\';
      out += c;
      text.remove_prefix(1);
    } else if ((c >= 0 && c < 0x20) || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
      text.remove_prefix(1);
    } else {
      const Utf8Piece piece = FirstPiece(text);
      if (IsC1(text.substr(0, piece.bytes)))
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(text[1]));
      else
        out += piece.valid ? text.substr(0, piece.bytes) : kReplacement;
      text.remove_prefix(piece.bytes);
    }
  }
  out += '"';
}

}  // namespace

JsonWriter& JsonWriter::Begin(char bracket) {
  Separate();
  out_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::End(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  AppendQuoted(out_, key);
  out_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Value(std::string_view text) {
  Separate();
  AppendQuoted(out_, text);
  return *this;
}

JsonWriter& JsonWriter::Value(int64_t value) {
  const fmt::format_int digits(value);
  return Plain({digits.data(), digits.size()});
}

JsonWriter& JsonWriter::Value(double value) {
  return Plain(std::isfinite(value) ? fmt::format("{}", value) : "null");
}

JsonWriter& JsonWriter::Column(std::string_view key, std::span<const int32_t> values) {
  return Numbers(key, values);
}

JsonWriter& JsonWriter::Column(std::string_view key, std::span<const int64_t> values) {
  return Numbers(key, values);
}

template <class T>
JsonWriter& JsonWriter::Numbers(std::string_view key, std::span<const T> values) {
  Key(key).BeginArray();
  for (const T value : values) Value(value);
  return EndArray();
}

JsonWriter& JsonWriter::Plain(std::string_view value) {
  Separate();
  out_ += value;
  return *this;
}

void JsonWriter::Separate() {
  if (needs_comma_) out_ += ',';
  needs_comma_ = true;
}

}  // namespace gpusonde
