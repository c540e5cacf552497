// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

// The entries of .eh_frame (Linux Standard Base 5.0, section 10.6) and .debug_frame (DWARF 5, section 6.4.1).
namespace gpusonde::unwind {

enum class CfiFormat : uint8_t { kEhFrame, kDebugFrame };

// A section's bytes, and its address.
struct CfiSection {
  std::span<const std::byte> bytes;
  uint64_t address = 0;
  CfiFormat format = CfiFormat::kEhFrame;
};

// A common information entry (CIE), shared by the entries of several functions.
struct Cie {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint64_t return_address_register = 0;
  uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  std::span<const std::byte> instructions;
};

// The frame description entry (FDE) of one function.
struct Fde {
  uint64_t start = 0;  // the file's own addresses
  uint64_t end = 0;
  const Cie* cie = nullptr;
  std::span<const std::byte> instructions = {};
};

// Calls visit(fde) for every entry that can be parsed, until it returns false. `cie` is valid during the call
// only. Returns the number of entries that could not be parsed: malformed, or of a kind not used on x86-64.
//
// Takes time proportional to the section. Entries of a crafted section may overlap, and share a `cie` with
// many instructions: the caller must bound the instructions that it runs (unwind/compile.cpp).
int64_t ForEachFde(const CfiSection& section, const std::function<bool(const Fde&)>& visit);

// A pointer in one of the encodings DW_EH_PE_* (LSB 5.0, section 10.5.1) is read by both; false for those
// that need more than the section (textrel, datarel, indirect).
class ByteReader;
bool ReadEncodedPointer(ByteReader& reader, uint8_t encoding, uint64_t section_address, uint64_t& value);

}  // namespace gpusonde::unwind
