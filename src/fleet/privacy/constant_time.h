// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Selections whose time and memory accesses don't depend on the selected value, for values that reveal which
// application runs. tests/programs/constant_time.cpp checks them with valgrind on optimised builds of both
// compilers: an optimiser may turn any C++ into a branch.
namespace gpusonde::privacy {

// Hides a value's origin from the optimiser, which otherwise infers that a mask is all ones or zeros.
inline uint64_t Opaque(uint64_t value) {
  __asm__("" : "+r"(value));
  return value;
}

// All ones if a < b, else 0.
inline uint64_t MaskLess(uint64_t a, uint64_t b) {
  const uint64_t borrow = (~a & b) | ((~a | b) & (a - b));  // Hacker's Delight 2-12
  return Opaque(uint64_t{0} - (borrow >> 63));
}

// All ones if a = b, else 0.
inline uint64_t MaskEqual(uint64_t a, uint64_t b) {
  const uint64_t difference = a ^ b;
  return Opaque(((difference | (uint64_t{0} - difference)) >> 63) - 1);
}

// `a` where the mask is all ones, `b` where it is 0.
inline uint64_t Select(uint64_t mask, uint64_t a, uint64_t b) { return b ^ (mask & (a ^ b)); }

// The index of the largest value, the lowest of equals; 0 for no values. Reads every value.
inline size_t ArgMax(std::span<const uint32_t> values) {
  uint64_t best = 0;
  uint64_t place = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t better = MaskLess(best, values[i]);
    best = Select(better, values[i], best);
    place = Select(better, i, place);
  }
  return place;
}

// Writes `row` over the row at `place` of a table of equal rows, and zeros over all others. Touches every
// slot.
inline void WriteRow(std::span<uint32_t> table, size_t place, std::span<const uint32_t> row) {
  for (size_t begin = 0, i = 0; begin + row.size() <= table.size(); begin += row.size(), ++i) {
    const auto mask = static_cast<uint32_t>(MaskEqual(i, place));
    for (size_t slot = 0; slot < row.size(); ++slot) table[begin + slot] = row[slot] & mask;
  }
}

}  // namespace gpusonde::privacy
