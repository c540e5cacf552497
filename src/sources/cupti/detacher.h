// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gpusonde::cupti {

// Detaches probes on a thread of its own, one after the other, as each takes 0.1 s. Thread-safe.
class Detacher {
 public:
  using Detach = std::function<void()>;

  Detacher() = default;
  // Detaches what is left.
  ~Detacher();
  Detacher(const Detacher&) = delete;
  Detacher& operator=(const Detacher&) = delete;

  // Where no thread can be started, the probes wait for the next call.
  void Add(std::vector<Detach> probes);

  // Nothing is detached while it exists: libbpf keeps a list that attaching and detaching change without a
  // lock. Waits for at most one probe.
  class Pause {
   public:
    explicit Pause(Detacher& detacher);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Detacher& detacher_;
  };

 private:
  void Run();

  std::mutex mutex_;  // guards the rest but for the thread
  std::condition_variable changed_;
  std::deque<Detach> waiting_;
  int pauses_ = 0;
  bool is_detaching_ = false;
  bool ends_ = false;
  std::thread thread_;  // once there was something to detach
};

}  // namespace gpusonde::cupti
