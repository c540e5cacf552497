// SPDX-License-Identifier: Apache-2.0
#include "fleet/kernel_name.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/demangle.h"

namespace gpusonde::fleet {
namespace {

constexpr size_t kMaxName = 8192;
constexpr size_t kMaxWords = 64;
constexpr size_t kMaxWordLength = 64;

// Words that describe the machine rather than the program; sorted.
constexpr std::array<std::string_view, 29> kNoise = {
    "ada",     "align",     "ampere",   "anonymous", "array", "at",     "blackwell", "char",
    "const",   "double",    "float",    "hopper",    "int",   "kepler", "kernel",    "long",
    "maxwell", "namespace", "native",   "pascal",    "short", "size",   "sm",        "stages",
    "std",     "turing",    "unsigned", "void",      "volta"};
static_assert(std::ranges::is_sorted(kNoise));

// Strips the parameter list, from the last parenthesis at template depth 0.
std::string_view WithoutArguments(std::string_view name) {
  int angles = 0;
  size_t cut = name.size();
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++angles;
    if (name[i] == '>' && angles > 0) --angles;
    if (name[i] == '(' && angles == 0 && name.substr(i) != "()" && !name.substr(i).starts_with("(anonymous"))
      cut = i;
  }
  return name.substr(0, cut);
}

}  // namespace

std::vector<std::string> KernelWords(std::string_view name) {
  const std::string whole = Demangle(std::string(name.substr(0, kMaxName)));
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    // Single letters remain from sizes such as 128x64.
    if (word.size() > 1 && words.size() < kMaxWords && !std::ranges::binary_search(kNoise, word))
      words.push_back(word.substr(0, kMaxWordLength));
    word.clear();
  };
  for (const char c : WithoutArguments(whole)) {
    if (IsLetter(c))
      word += Lower(c);
    else if (!IsDigit(c))
      end_word();
  }
  end_word();
  return words;
}

}  // namespace gpusonde::fleet
