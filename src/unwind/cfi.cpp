// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "unwind/byte_reader.h"

namespace gpusonde::unwind {
namespace {

constexpr uint32_t kExtendedLength = 0xFFFFFFFF;
// DW_EH_PE_*: the low four bits are the format, the next three what the value is relative to.
constexpr uint8_t kFormMask = 0x0F, kRelativeMask = 0x70, kIndirect = 0x80;
constexpr uint8_t kAbsolute = 0x00, kPcRelative = 0x10;
// Length of an augmentation such as "zPLR". Bounded, as entries of a crafted section may overlap.
constexpr size_t kMaxAugmentation = 16;
// Linkers merge equal CIEs: libtorch has 3. A .debug_frame has one for each source file.
constexpr size_t kMaxCies = 65'536;

std::optional<uint64_t> ReadForm(ByteReader& reader, uint8_t form) {
  switch (form) {
    case 0x00:  // absptr
    case 0x04:  // udata8
    case 0x0C:  // sdata8
      return reader.Read<uint64_t>();
    case 0x01:
      return reader.ReadUleb();
    case 0x02:
      return reader.Read<uint16_t>();
    case 0x03:
      return reader.Read<uint32_t>();
    case 0x09:
      return static_cast<uint64_t>(reader.ReadSleb());
    case 0x0A:
      return static_cast<uint64_t>(int64_t{reader.Read<int16_t>()});
    case 0x0B:
      return static_cast<uint64_t>(int64_t{reader.Read<int32_t>()});
    default:
      return std::nullopt;
  }
}

// A reader of the `size` bytes at `position` of a section.
class Entry {
 public:
  Entry(const CfiSection& section, size_t position, size_t size)
      : reader(section.bytes.subspan(position, size)), address(section.address + position) {}
  ByteReader reader;
  uint64_t address;  // of the entry's first byte
};

class Parser {
 public:
  Parser(const CfiSection& section, const std::function<bool(const Fde&)>& visit)
      : section_(section), visit_(visit) {}

  int64_t Run() {
    size_t position = 0;
    while (position < section_.bytes.size()) {
      ByteReader reader(section_.bytes.subspan(position));
      const auto short_length = reader.Read<uint32_t>();
      const bool is_64 = short_length == kExtendedLength;
      const uint64_t length = is_64 ? reader.Read<uint64_t>() : short_length;
      if (short_length == 0 && section_.format == CfiFormat::kEhFrame) break;  // the terminator
      const size_t body = position + reader.position();
      if (reader.failed() || length > section_.bytes.size() - body) {
        ++malformed_;
        break;
      }
      if (length > 0) ReadEntry(body, length, is_64);
      if (stopped_) break;
      position = body + length;
    }
    return malformed_;
  }

 private:
  void ReadEntry(size_t body, size_t size, bool is_64) {
    Entry entry(section_, body, size);
    const uint64_t id = is_64 ? entry.reader.Read<uint64_t>() : entry.reader.Read<uint32_t>();
    const bool eh = section_.format == CfiFormat::kEhFrame;
    const uint64_t cie_id = eh ? 0 : is_64 ? ~uint64_t{0} : kExtendedLength;
    const bool failed = entry.reader.failed();
    if (!failed && id == cie_id) return;  // a CIE is parsed when the first function refers to it
    // In .eh_frame the offset counts back from the field itself, the first of the body.
    const bool outside = eh && id > body;
    if (failed || outside || !ReadFde(entry, eh ? body - id : id)) ++malformed_;
  }

  bool ReadFde(Entry& entry, uint64_t cie_position) {
    const Cie* cie = FindCie(cie_position);
    if (cie == nullptr) return false;
    Fde fde{.cie = cie};
    if (!ReadEncodedPointer(entry.reader, cie->pointer_encoding, entry.address, fde.start)) return false;
    const std::optional<uint64_t> size = ReadForm(entry.reader, cie->pointer_encoding & kFormMask);
    if (!size.has_value()) return false;
    if (cie->has_augmentation_data) entry.reader.Take(entry.reader.ReadUleb());
    fde.end = fde.start + *size;
    fde.instructions = entry.reader.Rest();
    if (entry.reader.failed() || fde.end < fde.start) return false;
    if (*size > 0) stopped_ = !visit_(fde);
    return true;
  }

  const Cie* FindCie(uint64_t position) {
    const auto known = cies_.find(position);
    if (known != cies_.end()) return known->second.has_value() ? &*known->second : nullptr;
    if (cies_.size() >= kMaxCies) return nullptr;
    const std::optional<Cie>& cie = cies_.emplace(position, ReadCie(position)).first->second;
    return cie.has_value() ? &*cie : nullptr;
  }

  std::optional<Cie> ReadCie(uint64_t position) {
    if (position >= section_.bytes.size()) return std::nullopt;
    ByteReader head(section_.bytes.subspan(position));
    const auto short_length = head.Read<uint32_t>();
    const bool is_64 = short_length == kExtendedLength;
    const uint64_t length = is_64 ? head.Read<uint64_t>() : short_length;
    if (head.failed() || length > section_.bytes.size() - position - head.position()) return std::nullopt;
    Entry entry(section_, position + head.position(), length);
    ByteReader& reader = entry.reader;
    const uint64_t id = is_64 ? reader.Read<uint64_t>() : reader.Read<uint32_t>();
    const bool eh = section_.format == CfiFormat::kEhFrame;
    if (id != (eh ? 0 : is_64 ? ~uint64_t{0} : kExtendedLength)) return std::nullopt;

    Cie cie;
    const auto version = reader.Read<uint8_t>();
    const std::string_view augmentation = ReadText(reader);
    if (version == 4) {
      const auto address_size = reader.Read<uint8_t>();
      const auto segment_size = reader.Read<uint8_t>();
      if (address_size != 8 || segment_size != 0) return std::nullopt;
    } else if (version != 1 && version != 3) {
      return std::nullopt;
    }
    cie.code_alignment = reader.ReadUleb();
    cie.data_alignment = reader.ReadSleb();
    cie.return_address_register = version == 1 ? reader.Read<uint8_t>() : reader.ReadUleb();
    if (!ReadAugmentation(entry, augmentation, cie)) return std::nullopt;
    cie.instructions = reader.Rest();
    return reader.failed() ? std::nullopt : std::optional(cie);
  }

  static bool ReadAugmentation(Entry& entry, std::string_view augmentation, Cie& cie) {
    if (augmentation.empty()) return true;
    if (augmentation.front() != 'z') return false;  // of unknown length
    cie.has_augmentation_data = true;
    ByteReader data(entry.reader.Take(entry.reader.ReadUleb()));
    for (const char letter : augmentation.substr(1)) {
      uint64_t ignored = 0;
      if (letter == 'R')
        cie.pointer_encoding = data.Read<uint8_t>();
      else if (letter == 'L')
        data.Read<uint8_t>();
      else if (letter == 'P' && !ReadEncodedPointer(data, data.Read<uint8_t>() & kFormMask, 0, ignored))
        return false;
      else if (letter != 'P' && letter != 'S' && letter != 'B')
        break;  // the rest has an unknown size, and isn't needed
    }
    return !data.failed();
  }

  // Up to and without a NUL.
  static std::string_view ReadText(ByteReader& reader) {
    const std::span<const std::byte> rest = reader.Rest();
    const auto* text = reinterpret_cast<const char*>(rest.data());
    const size_t size = rest.empty() ? 0 : ::strnlen(text, std::min(rest.size(), kMaxAugmentation));
    if (size == kMaxAugmentation) reader.Fail();
    return reader.Take(size + 1).empty() ? std::string_view() : std::string_view(text, size);
  }

  const CfiSection& section_;
  const std::function<bool(const Fde&)>& visit_;
  std::unordered_map<uint64_t, std::optional<Cie>> cies_;
  int64_t malformed_ = 0;
  bool stopped_ = false;  // visit_ returned false
};

}  // namespace

bool ReadEncodedPointer(ByteReader& reader, uint8_t encoding, uint64_t section_address, uint64_t& value) {
  const uint64_t field = section_address + reader.position();
  const std::optional<uint64_t> read = ReadForm(reader, encoding & kFormMask);
  const uint8_t relative = encoding & kRelativeMask;
  if (!read.has_value() || (encoding & kIndirect) != 0 || (relative != kAbsolute && relative != kPcRelative))
    return false;
  value = *read + (relative == kPcRelative ? field : 0);
  return !reader.failed();
}

int64_t ForEachFde(const CfiSection& section, const std::function<bool(const Fde&)>& visit) {
  return Parser(section, visit).Run();
}

}  // namespace gpusonde::unwind
