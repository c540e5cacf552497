// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"
#include "importers/decimal.h"

namespace gpusonde::importers::kineto {
namespace {

struct Spelling {
  std::string_view text;
  Category category;
};

// In lower case, with '_' between words.
constexpr std::array kSpellings = {
    Spelling{"kernel", Category::kKernel},
    Spelling{"gpu_memcpy", Category::kMemcpy},
    Spelling{"memcpy", Category::kMemcpy},
    Spelling{"gpu_memset", Category::kMemset},
    Spelling{"memset", Category::kMemset},
    Spelling{"cuda_runtime", Category::kApi},
    Spelling{"cuda_driver", Category::kApi},
    Spelling{"runtime", Category::kApi},
    Spelling{"user_annotation", Category::kAnnotation},
    Spelling{"cpu_op", Category::kOperator},
    Spelling{"operator", Category::kOperator},
    Spelling{"python_function", Category::kPython},
    Spelling{"cuda_sync", Category::kSync},
    Spelling{"cpu_instant_event", Category::kInstant},
    // Intel's GPUs, and devices that add themselves to PyTorch.
    Spelling{"xpu_runtime", Category::kApi},
    Spelling{"xpu_driver", Category::kApi},
    Spelling{"privateuse1_runtime", Category::kApi},
    Spelling{"privateuse1_driver", Category::kApi},
    Spelling{"mtia_runtime", Category::kApi},
    // Converters of other profilers' traces.
    Spelling{"gpu_kernel", Category::kKernel},
    Spelling{"cuda_kernel", Category::kKernel},
    Spelling{"hip_kernel", Category::kKernel},
};

Category CategoryOfSpelling(std::string_view text) {
  for (const Spelling& spelling : kSpellings)
    if (spelling.text.size() == text.size() && spelling.text.front() == text.front() && spelling.text == text)
      return spelling.category;
  return Category::kOther;
}

MemoryKind MemoryOf(std::string_view name) {
  if (name == "Pageable" || name == "pageable") return MemoryKind::kPageable;
  if (name == "Pinned" || name == "pinned") return MemoryKind::kPinned;
  if (name == "Device" || name == "device" || name == "Array" || name == "array") return MemoryKind::kDevice;
  if (name == "Managed" || name == "managed") return MemoryKind::kManaged;
  return MemoryKind::kUnknown;
}

// Level Zero's letter for a kind of memory: that of the system, of the host (which the driver allocated), of
// a device, shared.
MemoryKind MemoryOf(char letter) {
  if (letter == 'M') return MemoryKind::kPageable;
  if (letter == 'H') return MemoryKind::kPinned;
  if (letter == 'D') return MemoryKind::kDevice;
  return letter == 'S' ? MemoryKind::kManaged : MemoryKind::kUnknown;
}

CopyKind CopyBetween(MemoryKind source, MemoryKind target) {
  const auto is_host = [](MemoryKind kind) {
    return kind == MemoryKind::kPageable || kind == MemoryKind::kPinned;
  };
  const bool from_device = source == MemoryKind::kDevice, to_device = target == MemoryKind::kDevice;
  if (is_host(source) && to_device) return CopyKind::kHostToDevice;
  if (from_device && is_host(target)) return CopyKind::kDeviceToHost;
  if (from_device && to_device) return CopyKind::kDeviceToDevice;
  return is_host(source) && is_host(target) ? CopyKind::kHostToHost : CopyKind::kUnknown;
}

std::optional<uint32_t> Hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, value, 16);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  return value;
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
  if (const Category known = CategoryOfSpelling(category); known != Category::kOther) return known;
  constexpr size_t kMaxSpelling = 64;
  const auto is_unusual = [](char c) { return (c >= 'A' && c <= 'Z') || c == ' ' || c == '-' || c == ','; };
  if (category.size() > kMaxSpelling || std::ranges::none_of(category, is_unusual)) return Category::kOther;
  std::array<char, kMaxSpelling> spelling{};
  std::ranges::transform(category, spelling.begin(),
                         [](char c) { return c == ' ' || c == '-' ? '_' : Lower(c); });
  std::string_view rest(spelling.data(), category.size());
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    const size_t begin = std::min(one.find_first_not_of('_'), one.size());  // the blank behind a comma
    if (const Category known = CategoryOfSpelling(one.substr(begin)); known != Category::kOther) return known;
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
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
  struct Spellings {
    std::string_view kineto, xla, roctracer;
    CopyKind kind;
  };
  constexpr std::array<Spellings, 5> kKinds = {
      {{"HtoD", "MemcpyH2D", "CopyHostToDevice", CopyKind::kHostToDevice},
       {"DtoH", "MemcpyD2H", "CopyDeviceToHost", CopyKind::kDeviceToHost},
       {"DtoD", "MemcpyD2D", "CopyDeviceToDevice", CopyKind::kDeviceToDevice},
       {"HtoH", "MemcpyH2H", "CopyHostToHost", CopyKind::kHostToHost},
       {"PtoP", "MemcpyP2P", "CopyPeerToPeer", CopyKind::kPeerToPeer}}};
  for (const Spellings& known : kKinds)
    if (name.find(known.kineto) != std::string_view::npos || name == known.xla ||
        name.starts_with(known.roctracer))
      event.copy = known.kind;
  const size_t open = name.find('(');
  const size_t close = name.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return;
  const std::string_view memory = name.substr(open + 1, close - open - 1);
  constexpr std::string_view kArrow = " -> ";
  const size_t arrow = memory.find(kArrow);
  if (memory.size() == 3 && memory[1] == '2') {
    event.source = MemoryOf(memory[0]);
    event.target = MemoryOf(memory[2]);
    event.copy = CopyBetween(event.source, event.target);
    return;
  }
  if (arrow == std::string_view::npos) {
    event.target = MemoryOf(memory);
    return;
  }
  event.source = MemoryOf(memory.substr(0, arrow));
  event.target = MemoryOf(memory.substr(arrow + kArrow.size()));
}

std::string_view XlaDetail(std::string_view details, std::string_view key) {
  const size_t at = details.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = details.substr(at + key.size());
  return rest.substr(0, rest.find(' '));
}

void DescribeXlaCopy(std::string_view details, GpuEvent& event) {
  event.bytes = std::max<int64_t>(0, ParseWhole(XlaDetail(details, "size:")).value_or(0));
  event.source = MemoryOf(XlaDetail(details, "kind_src:"));
  event.target = MemoryOf(XlaDetail(details, "kind_dst:"));
}

bool IsApiName(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "cu", "hip"})
    if (name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] >= 'A' &&
        name[prefix.size()] <= 'Z')
      return true;
  return false;
}

SyncKind SyncKindOf(std::string_view name) {
  if (name == "Stream Wait Event") return SyncKind::kStreamWait;
  if (name.starts_with("Stream")) return SyncKind::kStream;
  if (name.starts_with("Event")) return SyncKind::kEvent;
  if (name.starts_with("Context")) return SyncKind::kContext;
  return SyncKind::kUnknown;
}

int64_t ReadCorrelation(std::string_view number) {
  return CorrelationOf(ParseWhole(number).value_or(kNoCorrelation));
}

std::optional<int64_t> TrackNumber(std::string_view token) {
  if (const std::optional<int64_t> number = ParseWhole(token); number.has_value()) return number;
  constexpr std::string_view kDigits = "0123456789";
  const std::string_view text = Unquote(token);
  const size_t last = text.find_last_of(kDigits);
  if (last == std::string_view::npos) return std::nullopt;
  const size_t before = text.find_last_not_of(kDigits, last);
  const size_t first = before == std::string_view::npos ? 0 : before + 1;
  return ParseWhole(text.substr(first, last + 1 - first));
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
