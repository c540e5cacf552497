// SPDX-License-Identifier: Apache-2.0
#include "base/display_width.h"

#include <algorithm>
#include <cstdint>

#include "base/utf8.h"

namespace gpusonde {
namespace {

struct CodePoints {
  uint32_t first, last;
};

// East_Asian_Width W and F of Unicode 14.0.0, with the unassigned code points between; all of the blocks of
// emoji.
constexpr CodePoints kWide[] = {
    {0x1100, 0x115F}, {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},  {0x23F0, 0x23F0},
    {0x23F3, 0x23F3}, {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},  {0x267F, 0x267F},
    {0x2693, 0x2693}, {0x26A1, 0x26A1},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},  {0x26C4, 0x26C5},
    {0x26CE, 0x26CE}, {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},  {0x26F5, 0x26F5},
    {0x26FA, 0x26FA}, {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},  {0x2728, 0x2728},
    {0x274C, 0x274C}, {0x274E, 0x274E},   {0x2753, 0x2755},   {0x2757, 0x2757},  {0x2795, 0x2797},
    {0x27B0, 0x27B0}, {0x27BF, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},  {0x2B55, 0x2B55},
    {0x2E80, 0x303E}, {0x3041, 0x3247},   {0x3250, 0x4DBF},   {0x4E00, 0xA4C6},  {0xA960, 0xA97C},
    {0xAC00, 0xD7A3}, {0xF900, 0xFAD9},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6B},  {0xFF01, 0xFF60},
    {0xFFE0, 0xFFE6}, {0x16FE0, 0x1B2FB}, {0x1F000, 0x1FAFF}, {0x20000, 0x3FFFD}};

// Combining marks, zero-width characters and variation selectors of the common scripts.
constexpr CodePoints kNarrowest[] = {{0x300, 0x36F},    {0x483, 0x489},   {0x591, 0x5BD},   {0x64B, 0x65F},
                                     {0x1AB0, 0x1AFF},  {0x1DC0, 0x1DFF}, {0x200B, 0x200D}, {0x2060, 0x2064},
                                     {0x20D0, 0x20FF},  {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF},
                                     {0xE0100, 0xE01EF}};

template <size_t kCount>
bool Contains(const CodePoints (&ranges)[kCount], uint32_t code_point) {
  const auto range = std::ranges::lower_bound(ranges, code_point, {}, &CodePoints::last);
  return range != std::end(ranges) && range->first <= code_point;
}

size_t WidthOf(uint32_t code_point) {
  if (code_point < 0x300) return 1;
  if (Contains(kNarrowest, code_point)) return 0;
  return Contains(kWide, code_point) ? 2 : 1;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Utf8Piece piece = FirstPiece(text);
    columns += piece.valid ? WidthOf(CodePoint(text.substr(0, piece.bytes))) : 1;
    text.remove_prefix(piece.bytes);
  }
  return columns;
}

std::string CutToWidth(std::string_view text, size_t columns) {
  if (DisplayWidth(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  size_t end = 0;
  for (size_t used = 0; end < text.size();) {
    const Utf8Piece piece = FirstPiece(text.substr(end));
    used += DisplayWidth(text.substr(end, piece.bytes));
    if (used > columns - 1) break;
    end += piece.bytes;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace gpusonde
