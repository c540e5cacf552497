// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "five_libraries/stages.h"

namespace five {
namespace {

[[gnu::noinline]] long Mix(long rounds) {
  uint64_t value = 88172645463325252;
  for (long i = 0; i < rounds * 400; ++i) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
  }
  return static_cast<long>(value & 0xFF) + 1;
}

[[gnu::noinline]] long Sort(long rounds) {
  std::vector<uint32_t> values(static_cast<size_t>(rounds) * 4 + 1);
  uint32_t next = 1;
  for (uint32_t& value : values) value = next = next * 1664525 + 1013904223;
  std::sort(values.begin(), values.end());
  return static_cast<long>(values.front() & 0xFF);
}

// In the C library: memcpy, malloc, free; in the C++ library: the balancing of trees.
[[gnu::noinline]] long Collect(long rounds) {
  std::map<std::string, long> counts;
  for (long i = 0; i < rounds; ++i)
    ++counts["a name that needs memory of its own: " + std::to_string(i % 97)];
  std::vector<char> from(1 << 14, 'x'), to(1 << 14);
  for (long i = 0; i < rounds / 4; ++i) std::memcpy(to.data(), from.data(), to.size());
  return static_cast<long>(counts.size()) + to[0];
}

}  // namespace

long FifthLibrary(long rounds) { return Mix(rounds) + Sort(rounds) + Collect(rounds); }

}  // namespace five
