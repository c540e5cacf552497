// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfa_program.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "unwind/expression.h"

namespace gpusonde::unwind {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

struct Row {
  uint64_t address;
  Rule rule;
};

// The rows of a function of 100 bytes at 1000 with the usual begin: CFA = rsp + 8, return address at CFA − 8.
class CfaProgram : public testing::Test {
 protected:
  bool Run(std::initializer_list<int> instructions) {
    const std::vector<std::byte> initial = Bytes({0x0c, 7, 8, 0x90, 1}), bytes = Bytes(instructions);
    const Cie cie{.code_alignment = 1,
                  .data_alignment = -8,
                  .return_address_register = 16,
                  .pointer_encoding = 0,
                  .has_augmentation_data = false,
                  .instructions = initial};
    rows_.clear();
    return RunCfaProgram({.start = 1000, .end = 1100, .cie = &cie, .instructions = bytes},
                         [this](uint64_t address, const Rule& rule) { rows_.push_back({address, rule}); });
  }
  std::vector<Row> rows_;
};

TEST_F(CfaProgram, APushAndAFrame) {
  // advance 1; CFA offset 16; rbp at CFA − 16; advance 3; CFA register rbp; advance 90; CFA = rsp + 8.
  ASSERT_TRUE(Run({0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 90, 0x0c, 7, 8}));
  ASSERT_EQ(rows_.size(), 4u);
  EXPECT_EQ(rows_[0].address, 1000u);
  EXPECT_EQ(rows_[0].rule.cfa_register, GPUSONDE_DWARF_RSP);
  EXPECT_EQ(rows_[0].rule.cfa_offset, 8);
  EXPECT_EQ(rows_[0].rule.ra_offset, -8);
  EXPECT_EQ(rows_[0].rule.rbp, GPUSONDE_SAVED_NOT);
  EXPECT_EQ(rows_[1].address, 1001u);
  EXPECT_EQ(rows_[1].rule.cfa_offset, 16);
  EXPECT_EQ(rows_[1].rule.rbp, GPUSONDE_SAVED_AT_CFA);
  EXPECT_EQ(rows_[1].rule.rbp_offset, -16);
  EXPECT_EQ(rows_[2].rule.cfa_register, GPUSONDE_DWARF_RBP);
  EXPECT_EQ(rows_[2].rule.cfa_offset, 16);
  EXPECT_EQ(rows_[3].address, 1094u);
  EXPECT_EQ(rows_[3].rule.cfa_offset, 8);
}

TEST_F(CfaProgram, RemembersAndRestoresStates) {
  ASSERT_TRUE(Run({0x0a, 0x41, 0x0e, 32, 0x41, 0x0b}));
  ASSERT_EQ(rows_.size(), 3u);
  EXPECT_EQ(rows_[1].rule.cfa_offset, 32);
  EXPECT_EQ(rows_[2].rule.cfa_offset, 8);
}

TEST_F(CfaProgram, AnUndefinedReturnAddressEndsTheStack) {
  ASSERT_TRUE(Run({0x07, 16}));
  ASSERT_EQ(rows_.size(), 1u);
  EXPECT_EQ(rows_[0].rule.cfa, GPUSONDE_CFA_END);
}

TEST_F(CfaProgram, ASignalFrame) {
  // CFA = *(rsp + 160); rbp at rsp + 120; the return address at rsp + 168. As glibc writes it.
  ASSERT_TRUE(
      Run({0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0x00, 0x10, 16, 3, 0x77, 0xa8, 0x01}));
  const Rule& rule = rows_.at(0).rule;
  EXPECT_EQ(rule.cfa, GPUSONDE_CFA_DEREFERENCE);
  EXPECT_EQ(rule.cfa_offset, 160);
  EXPECT_EQ(rule.rbp, GPUSONDE_SAVED_AT_RSP);
  EXPECT_EQ(rule.rbp_offset, 120);
  EXPECT_EQ(rule.ra, GPUSONDE_SAVED_AT_RSP);
  EXPECT_EQ(rule.ra_offset, 168);
}

TEST_F(CfaProgram, AProcedureLinkageTable) {
  const std::vector<std::byte> expression =
      Bytes({0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
  Rule rule{};
  ASSERT_TRUE(ParseCfaExpression(expression, rule));
  EXPECT_EQ(rule.cfa, GPUSONDE_CFA_PLT);
  EXPECT_EQ(rule.cfa_offset, 8);
  EXPECT_EQ(rule.cfa_add, 11);
}

TEST_F(CfaProgram, MarksUnsupportedRules) {
  ASSERT_TRUE(Run({0x0f, 1, 0x9c}));  // an expression that we don't support
  EXPECT_EQ(rows_.at(0).rule.cfa, GPUSONDE_CFA_UNSUPPORTED);
  ASSERT_TRUE(Run({0x09, 16, 2}));  // the return address in another register
  EXPECT_EQ(rows_.at(0).rule.cfa, GPUSONDE_CFA_UNSUPPORTED);
}

TEST_F(CfaProgram, ANegativeOffsetIsBeyondTheCfaAndTheLargestIsUnsupported) {
  ASSERT_TRUE(Run({0x2f, 16, 2}));
  EXPECT_EQ(rows_.at(0).rule.ra, GPUSONDE_SAVED_AT_CFA);
  EXPECT_EQ(rows_.at(0).rule.ra_offset, 16);
  ASSERT_TRUE(Run({0x2f, 16, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}));  // 2^63
  EXPECT_EQ(rows_.at(0).rule.cfa, GPUSONDE_CFA_UNSUPPORTED);
}

TEST_F(CfaProgram, EndsWithNoRuleAtMalformedInstructions) {
  EXPECT_FALSE(Run({0x41, 0x0e, 16, 0x41, 0x3f}));
  ASSERT_EQ(rows_.size(), 3u);
  EXPECT_EQ(rows_[1].rule.cfa_offset, 16);
  EXPECT_EQ(rows_[2].rule.cfa, GPUSONDE_CFA_NONE);
  EXPECT_FALSE(Run({0x0b})) << "nothing remembered";
  EXPECT_FALSE(Run({0x0e})) << "cut short";
}

TEST_F(CfaProgram, DropsRowsBeyondTheFunctionsEnd) {
  ASSERT_TRUE(Run({0x04, 0xff, 0xff, 0xff, 0xff, 0x0e, 16}));
  EXPECT_EQ(rows_.size(), 1u);
}

}  // namespace
}  // namespace gpusonde::unwind
