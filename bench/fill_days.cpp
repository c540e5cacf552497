// SPDX-License-Identifier: Apache-2.0
// Fills a folder with the files of days, as `gpusonde up` would have until now, for bench/page_bench.py and
// tests/e2e.
//
//     bench_fill_days FOLDER HOURS KERNELS_PER_SECOND
//
// HOURS may be a fraction of whole minutes.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/time.h"
#include "bench.h"
#include "node_feed.h"

int main(int argc, char** argv) {
  using gpusonde::EpochNow, gpusonde::kNanosPerSecond, gpusonde::Must, gpusonde::NodeFeed;
  const int64_t minutes = argc == 4 ? std::lround(std::atof(argv[2]) * 60) : 0;
  const int64_t rate = argc == 4 ? std::atoll(argv[3]) : 0;
  if (minutes < 1 || rate < 100) {
    fmt::print(stderr, "usage: bench_fill_days FOLDER HOURS KERNELS_PER_SECOND, of which at least 100\n");
    return 2;
  }
  char host[256] = {};  // of this machine, on which `up` runs next
  if (::gethostname(host, sizeof(host) - 1) != 0) return 1;
  auto store = Must(gpusonde::store::LiveStore::Open(argv[1]));
  // A tenth of the names of bench_gpu: a second is then a tenth of the rows.
  NodeFeed feed(*store, {.first_ns = EpochNow() - minutes * 60 * kNanosPerSecond,
                         .kernels_per_second = rate,
                         .names = 8,
                         .streams = 4,
                         .host = host});
  for (int64_t minute = 0; minute < minutes; ++minute) {
    feed.Minute();
    Must(store->CommitHeld());
  }
}
