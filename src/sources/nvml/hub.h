// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sources/nvml/library.h"
#include "sources/nvml/news.h"

namespace gpusonde::nvml {

// Where the reading threads and whoever takes the news meet. Thread-safe.
class Hub {
 public:
  // The place of each of `found` among all devices there ever were; new ones are added. Known by their UUID.
  std::vector<size_t> PlacesOf(std::span<const Device> found);
  std::vector<Device> devices() const;

  // Takes over what was learnt; the readings' devices already by their place here.
  void Publish(News news);
  News Take();

  void Stop();
  bool stopping() const;
  // False at once when Stop is or was called.
  bool Sleep(int64_t duration_ns);

  // The reading thread says that it is done; the other one waits for that. False: it isn't, after so long.
  void SayDone();
  bool WaitUntilDone(int64_t longest_ns);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Device> devices_;
  News news_;
  bool stopping_ = false;
  bool done_ = false;
};

}  // namespace gpusonde::nvml
