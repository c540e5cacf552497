// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression.h"

#include <limits>

#include "unwind/byte_reader.h"

namespace gpusonde::unwind {
namespace {

// DWARF 5, section 7.7.1.
enum Op : uint8_t {
  kDeref = 0x06,
  kAnd = 0x1A,
  kPlus = 0x22,
  kPlusUconst = 0x23,
  kShl = 0x24,
  kGe = 0x2A,
  kLit0 = 0x30,
  kLit3 = 0x33,
  kLit15 = 0x3F,
  kLit31 = 0x4F,
  kBreg0 = 0x70,
  kBreg15 = 0x7F,
  kBreg16 = 0x80,
};

std::optional<int32_t> ToInt32(int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return static_cast<int32_t>(value);
}

std::optional<RegisterOffset> ReadRegisterOffset(ByteReader& reader) {
  const auto op = reader.Read<uint8_t>();
  if (op < kBreg0 || op > kBreg15) return std::nullopt;
  std::optional<int32_t> offset = ToInt32(reader.ReadSleb());
  if (reader.failed() || !offset.has_value()) return std::nullopt;
  return RegisterOffset{static_cast<uint8_t>(op - kBreg0), *offset};
}

// The expression of binutils and lld for a procedure linkage table: rsp + 8, and 8 more from byte N of an
// entry on, after it has pushed its index. breg7 8; breg16 0; lit15; and; lit N; ge; lit3; shl; plus.
std::optional<uint8_t> ReadPltThreshold(ByteReader& reader) {
  const bool rip = reader.Read<uint8_t>() == kBreg16 && reader.ReadSleb() == 0;
  const bool masked = reader.Read<uint8_t>() == kLit15 && reader.Read<uint8_t>() == kAnd;
  const auto literal = reader.Read<uint8_t>();
  const bool rest = reader.Read<uint8_t>() == kGe && reader.Read<uint8_t>() == kLit3 &&
                    reader.Read<uint8_t>() == kShl && reader.Read<uint8_t>() == kPlus;
  if (!rip || !masked || !rest || literal < kLit0 || literal > kLit15 || reader.failed() || !reader.AtEnd())
    return std::nullopt;
  return static_cast<uint8_t>(literal - kLit0);
}

// Constants added at the end: plus_uconst N, or a literal and plus.
std::optional<int32_t> ReadAdded(ByteReader& reader) {
  int64_t sum = 0;
  while (!reader.AtEnd()) {
    const auto op = reader.Read<uint8_t>();
    if (op == kPlusUconst) {
      const uint64_t addend = reader.ReadUleb();
      if (addend > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) return std::nullopt;
      sum += static_cast<int64_t>(addend);
    } else if (op >= kLit0 && op <= kLit31 && reader.Read<uint8_t>() == kPlus) {
      sum += op - kLit0;
    } else {
      return std::nullopt;
    }
    if (!ToInt32(sum).has_value()) return std::nullopt;
  }
  return reader.failed() ? std::nullopt : ToInt32(sum);
}

}  // namespace

std::optional<RegisterOffset> ParseRegisterOffset(std::span<const std::byte> expression) {
  ByteReader reader(expression);
  std::optional<RegisterOffset> found = ReadRegisterOffset(reader);
  return found.has_value() && reader.AtEnd() ? found : std::nullopt;
}

bool ParseCfaExpression(std::span<const std::byte> expression, Rule& rule) {
  ByteReader reader(expression);
  const std::optional<RegisterOffset> base = ReadRegisterOffset(reader);
  if (!base.has_value()) return false;
  rule.cfa = GPUSONDE_CFA_REGISTER;
  rule.cfa_register = base->dwarf_register;
  rule.cfa_offset = base->offset;
  rule.cfa_add = 0;
  if (reader.AtEnd()) return true;

  ByteReader plt = reader;
  if (const std::optional<uint8_t> threshold = ReadPltThreshold(plt);
      threshold.has_value() && base->dwarf_register == GPUSONDE_DWARF_RSP) {
    rule.cfa = GPUSONDE_CFA_PLT;
    rule.cfa_add = *threshold;
    return true;
  }
  if (reader.Read<uint8_t>() != kDeref) return false;
  const std::optional<int32_t> added = ReadAdded(reader);
  if (!added.has_value()) return false;
  rule.cfa = GPUSONDE_CFA_DEREFERENCE;
  rule.cfa_add = *added;
  return true;
}

}  // namespace gpusonde::unwind
