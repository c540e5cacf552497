// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfa_program.h"

#include <limits>
#include <optional>
#include <vector>

#include "unwind/byte_reader.h"
#include "unwind/expression.h"

namespace gpusonde::unwind {
namespace {

// Real code nests two deep.
constexpr size_t kMaxRemembered = 64;

// DWARF 5, section 7.24; the last two are GNU's.
enum Instruction : uint8_t {
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0A,
  kRestoreState = 0x0B,
  kDefCfa = 0x0C,
  kDefCfaRegister = 0x0D,
  kDefCfaOffset = 0x0E,
  kDefCfaExpression = 0x0F,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kGnuArgsSize = 0x2E,
  kGnuNegativeOffsetExtended = 0x2F,
  // These have an operand in their low six bits.
  kAdvanceLoc = 0x40,
  kOffset = 0x80,
  kRestore = 0xC0,
};

// Where the caller's value of a register is.
struct Saved {
  enum class Kind : uint8_t { kKept, kLost, kAt, kElsewhere };
  Kind kind = Kind::kKept;
  uint8_t where = GPUSONDE_SAVED_NOT;  // enum gpusonde_saved_kind
  int32_t offset = 0;
};

struct State {
  Rule cfa = RuleOfKind(GPUSONDE_CFA_UNSUPPORTED);  // its cfa* fields
  Saved rbp;
  Saved ra = {.kind = Saved::Kind::kLost};

  Rule ToRule() const {
    if (cfa.cfa == GPUSONDE_CFA_NONE) return {};
    if (ra.kind == Saved::Kind::kLost) return RuleOfKind(GPUSONDE_CFA_END);
    Rule rule = cfa;
    if (ra.kind != Saved::Kind::kAt || rbp.kind == Saved::Kind::kElsewhere ||
        cfa.cfa == GPUSONDE_CFA_UNSUPPORTED)
      return RuleOfKind(GPUSONDE_CFA_UNSUPPORTED);
    rule.ra = ra.where;
    rule.ra_offset = ra.offset;
    // If the caller's rbp is undefined, the caller doesn't use it, and we don't need it either.
    if (rbp.kind == Saved::Kind::kAt) {
      rule.rbp = rbp.where;
      rule.rbp_offset = rbp.offset;
    }
    return rule;
  }
};

class Machine {
 public:
  Machine(const Fde& fde, const std::function<void(uint64_t, const Rule&)>& row) : fde_(fde), row_(row) {}

  bool Run() {
    const bool begun = Execute(fde_.cie->instructions);
    initial_ = state_;
    in_function_ = true;
    const bool whole = begun && Execute(fde_.instructions);
    if (!whole) state_.cfa = RuleOfKind(GPUSONDE_CFA_NONE);
    Emit();
    return whole;
  }

 private:
  bool Execute(std::span<const std::byte> instructions) {
    ByteReader reader(instructions);
    while (!reader.AtEnd()) {
      const auto byte = reader.Read<uint8_t>();
      const uint8_t primary = byte & 0xC0, operand = byte & 0x3F;
      bool known = true;
      if (primary == kAdvanceLoc)
        known = Advance(operand);
      else if (primary == kOffset)
        Set(operand, AtCfa(Factored(reader.ReadUleb())));
      else if (primary == kRestore)
        Restore(operand);
      else
        known = ExecuteExtended(byte, reader);
      if (!known || reader.failed()) return false;
    }
    return !reader.failed();
  }

  bool ExecuteExtended(uint8_t instruction, ByteReader& reader) {
    switch (instruction) {
      case kNop:
        return true;
      case kSetLoc:
        return false;  // not emitted by any compiler
      case kAdvanceLoc1:
        return Advance(reader.Read<uint8_t>());
      case kAdvanceLoc2:
        return Advance(reader.Read<uint16_t>());
      case kAdvanceLoc4:
        return Advance(reader.Read<uint32_t>());
      case kRememberState:
        if (remembered_.size() >= kMaxRemembered) return false;
        remembered_.push_back(state_);
        return true;
      case kRestoreState:
        if (remembered_.empty()) return false;
        state_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case kGnuArgsSize:
        reader.ReadUleb();
        return true;
      default:
        return ExecuteCfa(instruction, reader) || ExecuteRegister(instruction, reader);
    }
  }

  bool ExecuteCfa(uint8_t instruction, ByteReader& reader) {
    switch (instruction) {
      case kDefCfa:
      case kDefCfaSf: {
        const uint64_t number = reader.ReadUleb();
        SetCfa(number, instruction == kDefCfa ? Unfactored(reader.ReadUleb()) : Factored(reader.ReadSleb()));
        return true;
      }
      case kDefCfaRegister:
        // The register can only be changed in a rule of register and offset.
        SetCfa(reader.ReadUleb(),
               state_.cfa.cfa == GPUSONDE_CFA_REGISTER ? std::optional(state_.cfa.cfa_offset) : std::nullopt);
        return true;
      case kDefCfaOffset:
      case kDefCfaOffsetSf: {
        const std::optional<int32_t> offset =
            instruction == kDefCfaOffset ? Unfactored(reader.ReadUleb()) : Factored(reader.ReadSleb());
        const bool changeable = state_.cfa.cfa == GPUSONDE_CFA_REGISTER;
        SetCfa(state_.cfa.cfa_register, changeable ? offset : std::nullopt);
        return true;
      }
      case kDefCfaExpression: {
        state_.cfa = {};
        if (!ParseCfaExpression(reader.Take(reader.ReadUleb()), state_.cfa))
          state_.cfa = RuleOfKind(GPUSONDE_CFA_UNSUPPORTED);
        return true;
      }
      default:
        return false;
    }
  }

  bool ExecuteRegister(uint8_t instruction, ByteReader& reader) {
    if (instruction < kOffsetExtended ||
        (instruction > kValExpression && instruction != kGnuNegativeOffsetExtended))
      return false;
    const uint64_t number = reader.ReadUleb();
    switch (instruction) {
      case kOffsetExtended:
        Set(number, AtCfa(Factored(reader.ReadUleb())));
        return true;
      case kOffsetExtendedSf:
        Set(number, AtCfa(Factored(reader.ReadSleb())));
        return true;
      case kGnuNegativeOffsetExtended:
        // Negated as unsigned: of 2^63 there is no signed opposite.
        Set(number, AtCfa(Factored(static_cast<int64_t>(-reader.ReadUleb()))));
        return true;
      case kRestoreExtended:
        Restore(number);
        return true;
      case kUndefined:
        Set(number, {.kind = Saved::Kind::kLost});
        return true;
      case kSameValue:
        Set(number, {.kind = Saved::Kind::kKept});
        return true;
      case kExpression: {
        const auto where = ParseRegisterOffset(reader.Take(reader.ReadUleb()));
        Set(number, where.has_value() ? AtRegister(*where) : Saved{.kind = Saved::Kind::kElsewhere});
        return true;
      }
      case kRegister:
      case kValOffset:
      case kValOffsetSf:
        reader.ReadUleb();  // as long as the signed form
        Set(number, {.kind = Saved::Kind::kElsewhere});
        return true;
      case kValExpression:
        reader.Take(reader.ReadUleb());
        Set(number, {.kind = Saved::Kind::kElsewhere});
        return true;
      default:
        return false;
    }
  }

  // Ends the current row. Rows beyond the function's end are dropped.
  bool Advance(uint64_t delta) {
    if (!in_function_) return false;  // the CIE's initial instructions apply to a function's begin only
    if (delta == 0) return true;
    Emit();
    const uint64_t bytes = delta * fde_.cie->code_alignment;
    location_ = bytes < fde_.end - location_ ? location_ + bytes : fde_.end;
    return true;
  }

  void Emit() {
    if (location_ < fde_.end) row_(location_, state_.ToRule());
  }

  std::optional<int32_t> Unfactored(uint64_t value) const {
    if (value > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) return std::nullopt;
    return static_cast<int32_t>(value);
  }
  std::optional<int32_t> Factored(uint64_t value) const {
    return value > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())
               ? std::nullopt
               : Factored(static_cast<int64_t>(value));
  }
  std::optional<int32_t> Factored(int64_t value) const {
    int32_t product = 0;
    if (__builtin_mul_overflow(value, fde_.cie->data_alignment, &product)) return std::nullopt;
    return product;
  }

  static Saved AtCfa(std::optional<int32_t> offset) {
    if (!offset.has_value()) return {.kind = Saved::Kind::kElsewhere};
    return {.kind = Saved::Kind::kAt, .where = GPUSONDE_SAVED_AT_CFA, .offset = *offset};
  }
  static Saved AtRegister(const RegisterOffset& where) {
    if (where.dwarf_register == GPUSONDE_DWARF_RSP)
      return {.kind = Saved::Kind::kAt, .where = GPUSONDE_SAVED_AT_RSP, .offset = where.offset};
    if (where.dwarf_register == GPUSONDE_DWARF_RBP)
      return {.kind = Saved::Kind::kAt, .where = GPUSONDE_SAVED_AT_RBP, .offset = where.offset};
    return {.kind = Saved::Kind::kElsewhere};
  }

  static Rule RegisterRule(uint8_t number, int32_t offset) {
    Rule rule = RuleOfKind(GPUSONDE_CFA_REGISTER);
    rule.cfa_register = number;
    rule.cfa_offset = offset;
    return rule;
  }
  void SetCfa(uint64_t number, std::optional<int32_t> offset) {
    if (number >= GPUSONDE_UNWIND_REGISTERS || !offset.has_value())
      state_.cfa = RuleOfKind(GPUSONDE_CFA_UNSUPPORTED);
    else
      state_.cfa = RegisterRule(static_cast<uint8_t>(number), *offset);
  }

  // Other registers are not tracked.
  void Set(uint64_t number, const Saved& saved) {
    if (number == GPUSONDE_DWARF_RBP) state_.rbp = saved;
    if (number == fde_.cie->return_address_register) state_.ra = saved;
  }
  void Restore(uint64_t number) {
    if (number == GPUSONDE_DWARF_RBP) state_.rbp = initial_.rbp;
    if (number == fde_.cie->return_address_register) state_.ra = initial_.ra;
  }

  const Fde& fde_;
  const std::function<void(uint64_t, const Rule&)>& row_;
  uint64_t location_ = fde_.start;
  bool in_function_ = false;
  State state_, initial_;
  std::vector<State> remembered_;
};

}  // namespace

bool RunCfaProgram(const Fde& fde, const std::function<void(uint64_t address, const Rule& rule)>& row) {
  return Machine(fde, row).Run();
}

}  // namespace gpusonde::unwind
