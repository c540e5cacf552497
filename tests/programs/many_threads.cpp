// SPDX-License-Identifier: Apache-2.0
// many_threads [COUNT]: starts named threads that wait until all have started, do a little work and end.
// Prints their number.
#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <latch>
#include <memory>
#include <string>

#include "burn.h"

namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr int64_t kWorkNs = 200'000;

struct Work {
  std::latch* all_there;
  long number;
};

void* Thread(void* argument) {
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  ::prctl(PR_SET_NAME, fmt::format("worker-{}", work->number).c_str());
  work->all_there->arrive_and_wait();
  Burn(kWorkNs);
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  const long threads = count > 1 ? std::atol(arguments[1]) : 10'000;
  std::latch all_there(threads);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  std::unique_ptr<pthread_t[]> ids(new pthread_t[static_cast<size_t>(threads)]);
  for (long i = 0; i < threads; ++i)
    if (::pthread_create(&ids[static_cast<size_t>(i)], &attributes, Thread, new Work{&all_there, i}) != 0) {
      fmt::print(stderr, "only {} threads could be started\n", i);
      return 2;
    }
  for (long i = 0; i < threads; ++i) ::pthread_join(ids[static_cast<size_t>(i)], nullptr);
  fmt::print("{} threads\n", threads);
}
