// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "serve/hosts.h"

namespace gpusonde::serve {

// What is kept of each host, made when it is first asked for. That of hosts that were deleted is forgotten:
// one that was made anew under the name has other data. Thread-safe.
template <class T>
class OfHosts {
 public:
  // `make` returns a std::shared_ptr<T>.
  template <class Make>
  std::shared_ptr<T> Get(const std::shared_ptr<Host>& host, const Make& make) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(all_, [](const auto& entry) { return entry.second.host.expired(); });
    Kept& kept = all_[host->name()];
    if (kept.host.lock() != host) kept = {.host = host, .value = make()};
    return kept.value;
  }

  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return all_.size();
  }

 private:
  struct Kept {
    std::weak_ptr<Host> host;
    std::shared_ptr<T> value;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Kept> all_;
};

}  // namespace gpusonde::serve
