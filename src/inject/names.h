// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/sink.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {

// Kernel names by small numbers. CUPTI gives a pointer to the name with every record, and frees it with the
// module, so a name is known by its content; pointers are only a shortcut, forgotten when a module goes. Not
// thread-safe.
class Names {
 public:
  // Of a name's content.
  static uint64_t Hash(const char* text, size_t length);

  // The number of the name at `text`, told through `out` first if this session hasn't been. OTHER_NAME when
  // it has no room or can't be read (both counted).
  uint32_t Intern(const char* text, uint32_t session, Batch& out);

  // Tells every name that this session has been told.
  void TellAgain(uint32_t session, Batch& out);

  // The hash of an interned name.
  uint64_t HashOf(uint32_t id) const {
    return tables_ == nullptr || id >= count_ ? 0 : tables_->names[id].hash;
  }

  // A module is about to be unloaded: what pointers meant is no longer so.
  void ForgetPointers();

 private:
  // Enough for the largest frameworks: a process of PyTorch's own tests uses some 5,000 kernels.
  static constexpr uint32_t kMaxNames = 16384;
  static constexpr size_t kSlots = size_t{2} * kMaxNames;
  static constexpr size_t kArenaBytes = size_t{16} << 20;
  static constexpr size_t kPointers = 4096;

  struct Name {
    uint64_t hash;
    uint32_t offset;  // in the arena
    uint16_t length;
    uint16_t cut;
    uint32_t told;  // the session it was last told in
  };
  struct Pointer {
    const char* text;
    uint32_t id;
  };
  struct Tables {
    Name names[kMaxNames];   // by id; 0 is OTHER_NAME
    uint32_t slots[kSlots];  // ids, by hash
    Pointer pointers[kPointers];
    char arena[kArenaBytes];
    char scratch[GPUSONDE_GPU_NAME_BYTES];
  };

  uint32_t Find(const char* text, size_t length, bool cut);
  void Tell(uint32_t id, uint32_t session, Batch& out);

  Tables* tables_ = nullptr;  // made when first needed, untouched pages cost nothing
  uint32_t count_ = 1;
  size_t arena_used_ = 0;
};

}  // namespace gpusonde::inject
