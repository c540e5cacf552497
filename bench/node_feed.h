// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/batch.h"
#include "store/live/live_store.h"

namespace gpusonde {

// Fills a store like `gpusonde up` on a node of two CPUs on which a program launches kernels continuously, at
// most 250 a second with a stack.
class NodeFeed {
 public:
  struct Options {
    int64_t first_ns = 0;  // since the epoch
    int64_t kernels_per_second = 10'000;
    size_t names = 80;  // of kernels
    size_t streams = 4;
    std::string host = "node";
  };
  NodeFeed(store::LiveStore& store, const Options& options);

  // Adds the next minute's frames, one per second, to the store's buffer.
  void Minute();
  // Returns the next minute's frames without adding them.
  std::vector<std::vector<model::Batch>> Prepare();
  // Adds frames of the current day.
  void Hold(std::vector<model::Batch> frames);

 private:
  int64_t NowNs() const;
  std::vector<model::Batch> Second();

  store::LiveStore& store_;
  Options options_;
  std::mt19937_64 random_{2};
  int64_t sequence_ = 1;
  int64_t second_ = 0;
  store::Day day_{};  // whose file has the names
};

}  // namespace gpusonde
