// SPDX-License-Identifier: Apache-2.0
#include <alloca.h>

#include <cstddef>

#include "five_libraries/stages.h"

namespace five {
namespace {

[[gnu::noinline]] long Descend(long depth, long rounds) {
  const auto bytes = static_cast<size_t>(depth) * 24 + 8;
  auto* buffer = static_cast<volatile char*>(alloca(bytes));
  buffer[bytes - 1] = static_cast<char>(depth);
  const long found = depth == 0 ? FourthLibrary(rounds) : Descend(depth - 1, rounds);
  return found + buffer[bytes - 1];
}

}  // namespace

long ThirdLibrary(long rounds) { return Descend(8, rounds) + 1; }

}  // namespace five
