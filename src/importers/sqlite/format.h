// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The parts of SQLite's file format that we read: https://www.sqlite.org/fileformat2.html.
namespace gpusonde::importers::sqlite {

// Section 1.3, the header of the file, on page 1.
inline constexpr size_t kFileHeaderSize = 100;
inline constexpr size_t kPageSizeOffset = 16;       // 2 bytes; 1 means 65536
inline constexpr size_t kReservedOffset = 20;       // 1 byte
inline constexpr size_t kChangeCounterOffset = 24;  // 4 bytes
inline constexpr size_t kPageCountOffset = 28;      // 4 bytes, valid if the two numbers around it agree
inline constexpr size_t kTextEncodingOffset = 56;   // 4 bytes; 1 is UTF-8
inline constexpr size_t kVersionValidForOffset = 92;
inline constexpr uint32_t kMinPageSize = 512;
inline constexpr uint32_t kMaxPageSize = 65536;
inline constexpr uint32_t kMinUsableSize = 480;

// Section 1.6, b-tree pages.
inline constexpr uint8_t kInteriorTablePage = 0x05;
inline constexpr uint8_t kLeafTablePage = 0x0D;
inline constexpr uint8_t kInteriorIndexPage = 0x02;
inline constexpr uint8_t kLeafIndexPage = 0x0A;
inline constexpr size_t kLeafHeaderSize = 8;
inline constexpr size_t kInteriorHeaderSize = 12;
inline constexpr size_t kCellCountOffset = 3;       // 2 bytes
inline constexpr size_t kRightmostChildOffset = 8;  // 4 bytes, of interior pages
// A b-tree of 2^32 pages with at least 2 children per page is less than 32 deep; SQLite stops at 20.
inline constexpr int kMaxDepth = 20;

inline uint32_t Big16(const uint8_t* p) { return uint32_t{p[0]} << 8 | p[1]; }
inline uint32_t Big32(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

inline constexpr std::ptrdiff_t kMaxVarint = 9;

// Reads a varint (section 1.6) at p and moves p past it. Returns false if it doesn't end before `end`.
inline bool ReadVarint(const uint8_t*& p, const uint8_t* end, uint64_t& value) {
  if (p < end && *p < 0x80) {
    value = *p++;
    return true;
  }
  uint64_t result = 0;
  for (int i = 0; i < 8; ++i) {
    if (p == end) return false;
    const uint8_t byte = *p++;
    result = result << 7 | (byte & 0x7F);
    if (byte < 0x80) {
      value = result;
      return true;
    }
  }
  if (p == end) return false;
  value = result << 8 | *p++;
  return true;
}

}  // namespace gpusonde::importers::sqlite
