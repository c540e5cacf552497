// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "five_libraries/stages.h"

namespace five {
namespace {

thread_local long rounds_wanted = 0;
thread_local long sum = 0;

int Compare(const void* left, const void* right) {
  const int a = *static_cast<const int*>(left), b = *static_cast<const int*>(right);
  sum += ThirdLibrary(rounds_wanted);
  return a < b ? -1 : a > b ? 1 : 0;
}

}  // namespace

long SecondLibrary(long rounds) {
  int values[] = {3, 1, 2};
  rounds_wanted = rounds;
  std::qsort(values, 3, sizeof values[0], Compare);
  return sum + values[0];
}

}  // namespace five
