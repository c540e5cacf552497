// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/sink.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {

// Interns kernel names as small ids. Every CUPTI record has a pointer to its kernel's name, which is freed
// with the module, so names are identified by content; a cache by pointer is cleared when a module is
// unloaded. Not thread-safe.
class Names {
 public:
  // Enough for the largest frameworks: a process of PyTorch's test suite uses about 5,000 kernels.
  static constexpr uint32_t kMaxNames = 16384;

  static uint64_t Hash(const char* text, size_t length);

  // The id of the name at `text`; adds the name to `out` if it hasn't been sent in this session.
  // GPUSONDE_GPU_OTHER_NAME, counted as a drop, when the table is full or the name can't be read.
  uint32_t Intern(const char* text, uint32_t session, Batch& out);

  // The same, of a name that another table has identified. Other threads may use that one meanwhile.
  uint32_t InternFrom(const Names& other, uint32_t id, uint32_t session, Batch& out);

  // The id of the name at `text`, without sending it anywhere.
  uint32_t Identify(const char* text);

  // Adds all names that were sent in this session to `out` again.
  void Resend(uint32_t session, Batch& out);

  // The hash of an interned name.
  uint64_t HashOf(uint32_t id) const {
    return tables_ == nullptr || id >= count_ ? 0 : tables_->names[id].hash;
  }

  // Clears the cache by pointer, as a module's names are about to be freed.
  void ForgetPointers();

 private:
  static constexpr size_t kSlots = size_t{2} * kMaxNames;
  static constexpr size_t kArenaBytes = size_t{16} << 20;
  static constexpr size_t kPointers = 4096;

  struct Name {
    uint64_t hash;
    uint32_t offset;  // in the arena
    uint16_t length;
    uint16_t cut;
    uint32_t sent;  // the session it was last sent in
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

  bool HasTables();
  uint32_t Find(const char* text, size_t length, bool cut, uint64_t hash);
  void SendOnce(uint32_t id, uint32_t session, Batch& out);
  void Send(uint32_t id, uint32_t session, Batch& out);

  Tables* tables_ = nullptr;  // allocated when first needed; untouched pages cost nothing
  uint32_t count_ = 1;
  size_t arena_used_ = 0;
};

}  // namespace gpusonde::inject
