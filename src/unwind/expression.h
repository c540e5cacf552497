// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "unwind/rule_set.h"

// The few DWARF expressions (DWARF 5, section 2.5) that call frame information uses in practice.
namespace gpusonde::unwind {

// A register plus an offset, the expression for where a register is saved.
struct RegisterOffset {
  uint8_t dwarf_register = 0;
  int32_t offset = 0;
};
std::optional<RegisterOffset> ParseRegisterOffset(std::span<const std::byte> expression);

// Fills in a rule's cfa* fields from an expression for the canonical frame address: register + offset, the
// value there plus a constant (realigned stacks, signal frames, hand-written assembly), or the expression of
// a procedure linkage table. False for any other.
bool ParseCfaExpression(std::span<const std::byte> expression, Rule& rule);

}  // namespace gpusonde::unwind
