// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/detacher.h"

#include <pthread.h>

#include <iterator>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace gpusonde::cupti {

Detacher::~Detacher() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (const Detach& detach : waiting_) detach();  // there was no thread
}

void Detacher::Add(std::vector<Detach> probes) {
  if (probes.empty()) return;
  const std::lock_guard lock(mutex_);
  waiting_.insert(waiting_.end(), std::move_iterator(probes.begin()), std::move_iterator(probes.end()));
  changed_.notify_all();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    LogWarn("{} probes stay attached for now: can't start a thread: {}", waiting_.size(), error.what());
  }
}

void Detacher::Run() {
  ::pthread_setname_np(::pthread_self(), "detach");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return waiting_.empty() ? ends_ : pauses_ == 0; });
    if (waiting_.empty()) return;
    const Detach detach = std::move(waiting_.front());
    waiting_.pop_front();
    is_detaching_ = true;
    lock.unlock();
    detach();
    lock.lock();
    is_detaching_ = false;
    changed_.notify_all();
  }
}

Detacher::Pause::Pause(Detacher& detacher) : detacher_(detacher) {
  std::unique_lock lock(detacher_.mutex_);
  ++detacher_.pauses_;
  detacher_.changed_.wait(lock, [this] { return !detacher_.is_detaching_; });
}

Detacher::Pause::~Pause() {
  const std::lock_guard lock(detacher_.mutex_);
  --detacher_.pauses_;
  detacher_.changed_.notify_all();
}

}  // namespace gpusonde::cupti
