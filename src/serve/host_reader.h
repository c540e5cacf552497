// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.h"
#include "serve/hosts.h"
#include "serve/of_hosts.h"

namespace gpusonde::serve {

// Keeps something about each host, a `Known`, in memory. Reading hundreds of hosts takes seconds, so a thread
// reads one after the other, the one that was read the longest ago first, and for a part of its time only;
// clients wait for it a little. Known::read_ns is when that host was read, by the monotonic clock; 0: never.
// Thread-safe.
template <class Known>
class HostReader {
 public:
  struct Policy {
    // Reads a host, given what is known of it. Called by the thread, without a lock.
    std::function<Known(Host& host, Known known)> read;
    // Whether a host need not be read again. `wanted`: a client has asked lately.
    std::function<bool(const Host& host, const Known& known, bool wanted)> is_fresh;
    // How long after a question clients count as asking.
    int64_t wanted_ns = 0;
    // The thread reads for one of so many parts of its time while clients ask, and while none does (0:
    // never).
    int64_t wanted_parts = 2;
    int64_t unwanted_parts = 0;
    // How long after its start the thread waits before it reads without being asked.
    int64_t warm_up_ns = 0;
  };

  // `hosts`, and what the policy refers to, must outlive it.
  HostReader(Hosts& hosts, Policy policy)
      : hosts_(hosts),
        policy_(std::move(policy)),
        thread_([this](const std::stop_token& stop) { Run(stop); }) {}
  HostReader(const HostReader&) = delete;
  HostReader& operator=(const HostReader&) = delete;

  // What is known of these hosts, in their order. Waits until all of it is good enough for the caller, at
  // most for `timeout`. `wanted`: a client had asked lately, so that hosts are read again and again anyway.
  template <class IsGood>  // bool(const Host&, const Known&, bool wanted)
  std::vector<Known> Ask(const std::vector<std::shared_ptr<Host>>& hosts, std::chrono::milliseconds timeout,
                         const IsGood& is_good) {
    std::unique_lock lock(mutex_);
    const bool wanted = IsWanted();
    asked_ns_ = MonotonicNow();
    ++waiting_;
    changed_.notify_all();
    changed_.wait_for(lock, timeout, [&] {
      return std::ranges::all_of(
          hosts, [&](const std::shared_ptr<Host>& host) { return is_good(*host, known_[host], wanted); });
    });
    --waiting_;
    known_.ForgetDeleted();
    std::vector<Known> found;
    for (const std::shared_ptr<Host>& host : hosts) found.push_back(known_[host]);
    return found;
  }

 private:
  static constexpr std::chrono::milliseconds kIdle{500};  // between looks for a host to read

  void Run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      std::shared_ptr<Host> host = Next();
      if (host == nullptr) {
        // A client that waits now waits for a host that was deleted.
        const bool in_vain = waiting_ > 0;
        changed_.wait_for(lock, stop, kIdle, [&] { return !in_vain && waiting_ > 0; });
        continue;
      }
      Known known = known_[host];
      lock.unlock();
      const int64_t begin_ns = MonotonicNow();
      known = policy_.read(*host, std::move(known));
      known.read_ns = MonotonicNow();
      lock.lock();
      const int64_t took_ns = known.read_ns - begin_ns;
      known_[host] = std::move(known);
      host.reset();
      changed_.notify_all();
      const int64_t parts = IsWanted() ? policy_.wanted_parts : policy_.unwanted_parts;
      if (waiting_ == 0 && parts > 1)
        changed_.wait_for(lock, stop, std::chrono::nanoseconds(took_ns * (parts - 1)),
                          [this] { return waiting_ > 0; });
    }
  }

  // The host to read next; null: none.
  std::shared_ptr<Host> Next() {
    const bool wanted = IsWanted();
    if (!wanted && (policy_.unwanted_parts == 0 || MonotonicNow() - started_ns_ < policy_.warm_up_ns))
      return nullptr;
    known_.ForgetDeleted();
    std::shared_ptr<Host> next;
    int64_t oldest_ns = std::numeric_limits<int64_t>::max();
    for (const std::shared_ptr<Host>& host : hosts_.All()) {
      const Known& known = known_[host];
      if (policy_.is_fresh(*host, known, wanted) || known.read_ns >= oldest_ns) continue;
      next = host;
      oldest_ns = known.read_ns;
    }
    return next;
  }

  bool IsWanted() const { return MonotonicNow() - asked_ns_ < policy_.wanted_ns; }

  Hosts& hosts_;
  const Policy policy_;
  const int64_t started_ns_ = MonotonicNow();
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  OfHosts<Known> known_;
  int64_t asked_ns_ = kNeverNs;  // monotonic
  int waiting_ = 0;              // callers of Ask
  std::jthread thread_;          // the last member: it uses the others
};

}  // namespace gpusonde::serve
