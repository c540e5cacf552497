// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace simgpu {

// The schedule of a device's SMs: how many are in use, and by which process, at every time from now on.
//
// A kernel is scheduled once, when it is submitted, and never moved: nothing has to be simulated between two
// calls, and a client may be killed at any time. Kernels of one process share the SMs; those of two processes
// take turns, as on a device without MPS.
//
// Lives in shared memory: no pointers, trivially copyable. Not thread-safe: guarded by the device's lock.
class SmSchedule {
 public:
  // A time interval with the same kernels running. It ends where the next one begins; the last one is empty
  // and never ends.
  struct Segment {
    int64_t start_ns;
    int32_t sms;       // taken
    uint32_t owner;    // process slot + 1; 0 when no SM is taken
    uint32_t kernels;  // running
    uint32_t padding;
  };
  // A launch queue holds about a thousand kernels on real devices; each makes at most two segments.
  static constexpr uint32_t kCapacity = 4096;
  static constexpr uint32_t kSlots = 2 * kCapacity;  // so that they are moved to the front only now and then

  void Clear(int64_t now_ns);

  // Reserves `sms` of `total_sms` for `duration_ns` as soon after `ready_ns` as they are free, and returns
  // the start. Nullopt when the schedule is full: wait until NextEnd() and try again. Requires 0 < sms <=
  // total_sms, duration_ns > 0, owner > 0, and ready_ns not before the last Retire.
  std::optional<int64_t> Place(int64_t ready_ns, int64_t duration_ns, int32_t sms, int32_t total_sms,
                               uint32_t owner);

  // Calls account(start_ns, end_ns, segment) for the segments before now_ns, in order, and removes them.
  template <class Account>
  void Retire(int64_t now_ns, Account account) {
    while (count_ > 1 && segments_[first_ + 1].start_ns <= now_ns) {
      account(segments_[first_].start_ns, segments_[first_ + 1].start_ns, segments_[first_]);
      ++first_;
      --count_;
    }
    Segment& running = segments_[first_];
    if (running.start_ns >= now_ns) return;
    account(running.start_ns, now_ns, running);
    running.start_ns = now_ns;
  }

  // Frees all SMs that `owner` has reserved from now_ns on. Requires Retire(now_ns).
  void Cancel(uint32_t owner);

  // The first time at which a reservation ends; nullopt when the device is idle.
  std::optional<int64_t> NextEnd() const;
  const Segment& now() const { return segments_[first_]; }

  // False when a client that died in the middle of a change left an inconsistent state.
  bool Valid(int32_t total_sms) const;

 private:
  uint32_t IndexAt(int64_t time_ns) const;
  void SplitAt(uint32_t index, int64_t time_ns);
  bool Fits(const Segment& segment, int32_t sms, int32_t total_sms, uint32_t owner) const;
  uint32_t end() const { return first_ + count_; }

  uint32_t first_ = 0;
  uint32_t count_ = 0;
  std::array<Segment, kSlots> segments_;
};

}  // namespace simgpu
