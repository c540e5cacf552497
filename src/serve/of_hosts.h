// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "serve/hosts.h"

namespace gpusonde::serve {

// A value of each host, T() at first. A host that was made anew under the name of a deleted one has another.
// Not thread-safe.
template <class T>
class OfHosts {
 public:
  T& operator[](const std::shared_ptr<Host>& host) {
    Kept& kept = all_[host->name()];
    if (kept.host.lock() != host) kept = {.host = host, .value = T()};
    return kept.value;
  }

  // Forgets the values of deleted hosts.
  void ForgetDeleted() {
    std::erase_if(all_, [](const auto& entry) { return entry.second.host.expired(); });
  }

  size_t size() const { return all_.size(); }

 private:
  struct Kept {
    std::weak_ptr<Host> host;
    T value;
  };

  std::map<std::string, Kept> all_;
};

}  // namespace gpusonde::serve
