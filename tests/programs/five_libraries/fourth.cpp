// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "five_libraries/stages.h"

namespace five {
namespace {

[[gnu::noinline]] long Aligned(long rounds) {
  alignas(64) volatile long values[16];
  values[rounds % 16] = rounds;
  const long found = FifthLibrary(rounds);
  return found + values[rounds % 16];
}

[[gnu::noinline]] long Throwing(long rounds) {
  const long found = Aligned(rounds);
  if (found != 0) throw std::runtime_error("found");
  return 0;
}

}  // namespace

long FourthLibrary(long rounds) {
  try {
    return Throwing(rounds);
  } catch (const std::runtime_error& error) {
    return error.what()[0] + FifthLibrary(rounds / 4);
  }
}

}  // namespace five
