// SPDX-License-Identifier: Apache-2.0
// Runs through five libraries on two threads, all compiled with -O2 -fomit-frame-pointer, for the
// given number of seconds.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "five_libraries/stages.h"

int main(int count, char** arguments) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration<double>(count > 1 ? std::atof(arguments[1]) : 1);
  const auto run = [end] {
    long sum = 0;
    while (std::chrono::steady_clock::now() < end) sum += five::FirstLibrary(200);
    return sum;
  };
  long other = 0;
  std::thread thread([&] { other = run(); });
  const long own = run();
  thread.join();
  std::printf("%ld\n", (own + other) & 1);
  return 0;
}
