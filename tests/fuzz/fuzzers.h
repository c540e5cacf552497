// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

struct Fuzzer {
  std::string_view name;
  int (*run)(const uint8_t* data, size_t size);
};

// Those of this program, which CMakeLists.txt writes.
const std::vector<Fuzzer>& Fuzzers();
