// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "importers/decimal.h"

namespace gpusonde::importers::kineto {
namespace {

struct Spelling {
  std::string_view text;
  Category category;
};

constexpr std::array kSpellings = {
    Spelling{"kernel", Category::kKernel},
    Spelling{"Kernel", Category::kKernel},
    Spelling{"gpu_memcpy", Category::kMemcpy},
    Spelling{"Memcpy", Category::kMemcpy},
    Spelling{"memcpy", Category::kMemcpy},
    Spelling{"gpu_memset", Category::kMemset},
    Spelling{"Memset", Category::kMemset},
    Spelling{"memset", Category::kMemset},
    Spelling{"cuda_runtime", Category::kApi},
    Spelling{"cuda_driver", Category::kApi},
    Spelling{"Runtime", Category::kApi},
    Spelling{"runtime", Category::kApi},
    Spelling{"user_annotation", Category::kAnnotation},
    Spelling{"cpu_op", Category::kOperator},
    Spelling{"Operator", Category::kOperator},
    Spelling{"python_function", Category::kPython},
    Spelling{"cuda_sync", Category::kSync},
};

MemoryKind MemoryOf(std::string_view name) {
  if (name == "Pageable") return MemoryKind::kPageable;
  if (name == "Pinned") return MemoryKind::kPinned;
  if (name == "Device" || name == "Array") return MemoryKind::kDevice;
  if (name == "Managed") return MemoryKind::kManaged;
  return MemoryKind::kUnknown;
}

std::optional<uint32_t> Hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, value, 16);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  return value;
}

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// \uXXXX at the front of the text, or two of them; returns how many bytes it takes, 0 if it is none.
size_t AppendUnicodeEscape(std::string_view text, std::string& out) {
  const std::optional<uint32_t> first = Hex4(text.substr(2));
  if (!first.has_value()) return 0;
  if (*first < 0xD800 || *first > 0xDFFF) {
    AppendUtf8(*first, out);
    return 6;
  }
  if (*first < 0xDC00 && text.substr(6).starts_with("\\u")) {
    const std::optional<uint32_t> second = Hex4(text.substr(8));
    if (second.has_value() && *second >= 0xDC00 && *second <= 0xDFFF) {
      AppendUtf8(0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00), out);
      return 12;
    }
  }
  out += kReplacement;
  return 6;
}

}  // namespace

Category CategoryOf(std::string_view category) {
  for (const Spelling& spelling : kSpellings)
    if (spelling.text.size() == category.size() && spelling.text.front() == category.front() &&
        spelling.text == category)
      return spelling.category;
  return Category::kOther;
}

int64_t ElementBytes(std::string_view type) {
  // c10/core/ScalarType.h in PyTorch.
  if (type.starts_with("Float8_")) return 1;
  constexpr std::array<std::pair<std::string_view, int64_t>, 17> kTypes = {{
      {"Float", 4},
      {"BFloat16", 2},
      {"Half", 2},
      {"Double", 8},
      {"Long", 8},
      {"Int", 4},
      {"Short", 2},
      {"Char", 1},
      {"Byte", 1},
      {"Bool", 1},
      {"UInt16", 2},
      {"UInt32", 4},
      {"UInt64", 8},
      {"ComplexHalf", 4},
      {"ComplexFloat", 8},
      {"ComplexDouble", 16},
      {"Float4_e2m1fn_x2", 1},
  }};
  for (const auto& [name, bytes] : kTypes)
    if (type == name) return bytes;
  return 0;
}

void DescribeMemory(std::string_view name, GpuEvent& event) {
  if (name.find("HtoD") != std::string_view::npos) event.copy = CopyKind::kHostToDevice;
  if (name.find("DtoH") != std::string_view::npos) event.copy = CopyKind::kDeviceToHost;
  if (name.find("DtoD") != std::string_view::npos) event.copy = CopyKind::kDeviceToDevice;
  if (name.find("HtoH") != std::string_view::npos) event.copy = CopyKind::kHostToHost;
  if (name.find("PtoP") != std::string_view::npos) event.copy = CopyKind::kPeerToPeer;
  const size_t open = name.find('(');
  const size_t close = name.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return;
  const std::string_view memory = name.substr(open + 1, close - open - 1);
  constexpr std::string_view kArrow = " -> ";
  const size_t arrow = memory.find(kArrow);
  if (arrow == std::string_view::npos) {
    event.target = MemoryOf(memory);
    return;
  }
  event.source = MemoryOf(memory.substr(0, arrow));
  event.target = MemoryOf(memory.substr(arrow + kArrow.size()));
}

SyncKind SyncKindOf(std::string_view name) {
  if (name == "Stream Wait Event") return SyncKind::kStreamWait;
  if (name.starts_with("Stream")) return SyncKind::kStream;
  if (name.starts_with("Event")) return SyncKind::kEvent;
  if (name.starts_with("Context")) return SyncKind::kContext;
  return SyncKind::kUnknown;
}

int64_t CorrelationOf(std::string_view number) {
  const std::optional<int64_t> value = ParseWhole(number);
  const bool valid = value.has_value() && *value >= 0 && *value <= std::numeric_limits<uint32_t>::max();
  return valid ? *value : kNoCorrelation;
}

std::string_view Unquote(std::string_view token) {
  if (token.size() < 2 || token.front() != '"') return {};
  const size_t end = token.rfind('"');
  return end == 0 ? std::string_view() : token.substr(1, end - 1);
}

void Unescape(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t plain = std::min(text.find('\\'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.size() < 2) {
      out += text;
      return;
    }
    size_t used = 2;
    switch (text[1]) {
      case '"':
      case '\\':
      case '/':
        out += text[1];
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u':
        used = AppendUnicodeEscape(text, out);
        if (used != 0) break;
        [[fallthrough]];
      default:
        out += text.substr(0, 2);
        used = 2;
    }
    text.remove_prefix(used);
  }
}

std::string EscapeControls(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 8);
  bool in_string = false, escaped = false;
  for (const char c : json) {
    if (in_string && static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      escaped = false;
      continue;
    }
    if (escaped)
      escaped = false;
    else if (in_string && c == '\\')
      escaped = true;
    else if (c == '"')
      in_string = !in_string;
    out += c;
  }
  return out;
}

}  // namespace gpusonde::importers::kineto
