// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <cstdint>
#include <optional>
#include <string>

#include "simgpu/machine/clock.h"
#include "simgpu/timeline/device.h"

namespace simgpu {

constexpr uint32_t kMaxDevices = 8;

// The devices that all processes of this user (or of SIMGPU_MACHINE) share: a file in /dev/shm, made by
// whoever comes first with the SIMGPU_DEVICES and SIMGPU_MODEL of that moment. There is no server: whoever
// needs a device's state brings it up to date, and a client that is killed leaves nothing but a slot that the
// next one clears.
class Machine {
 public:
  // The one of this process, opened at the first call; null when it can't be (error() says why). Never
  // closed.
  static Machine* Get();
  static const char* error();
  // The file that it is in.
  static std::string Path();

  uint32_t device_count() const { return shared_->device_count; }

  // A device, locked while this lives.
  class Locked {
   public:
    Locked(Machine& machine, uint32_t ordinal);
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    Device* operator->() { return &device_; }
    Device& operator*() { return device_; }

   private:
    pthread_mutex_t& mutex_;
    Device& device_;
  };

  // What never changes needs no lock.
  const DeviceModel& model(uint32_t ordinal) const { return shared_->slots[ordinal].device.model(); }

  // Slot of this process on a device; nothing when too many processes are alive there.
  std::optional<uint32_t> AttachSelf(uint32_t ordinal);

  // Waits until another XID than the first `seen` happened on any device, at most timeout_ns; true when one
  // did.
  bool WaitForXid(uint32_t seen, int64_t timeout_ns);
  uint32_t xid_sequence() const;
  void RaiseXid(uint32_t ordinal, int64_t code);

 private:
  struct Slot {
    pthread_mutex_t mutex;
    Device device;
  };
  struct Shared {
    uint64_t magic;
    uint32_t device_count;
    uint32_t xid_sequence;  // futex
    Slot slots[kMaxDevices];
  };

  explicit Machine(Shared* shared) : shared_(shared) {}
  static Machine* Open();
  static void Create(Shared& shared);

  Shared* shared_;
};

// Clears the slots of processes that are gone. Costs a look into /proc for each, so it is done once a second
// at most.
void ForgetTheDead(Device& device, int64_t now_ns);

}  // namespace simgpu
