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

// The devices that all processes of this user (or of SIMGPU_MACHINE) share: a file in /dev/shm, created by
// the first process with its SIMGPU_DEVICES and SIMGPU_MODEL. There is no server: a process that needs a
// device's state brings it up to date, and the slot of a client that was killed is cleared by the next one.
class Machine {
 public:
  // The machine of this process, opened at the first call and never closed; null on failure (see error()).
  static Machine* Get();
  static const char* error();
  // The path of its file.
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

  // Immutable, so needs no lock.
  const DeviceModel& model(uint32_t ordinal) const { return shared_->slots[ordinal].device.model(); }

  // This process's slot on a device; nullopt when too many processes use it.
  std::optional<uint32_t> AttachSelf(uint32_t ordinal);

  // Waits, at most timeout_ns, until more than `seen` XIDs have happened on any device; true if so.
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

// Clears the slots of processes that have ended. Reads /proc for each, so it is called at most once a second.
void ForgetTheDead(Device& device, int64_t now_ns);

}  // namespace simgpu
