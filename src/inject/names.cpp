// SPDX-License-Identifier: Apache-2.0
#include "inject/names.h"

#include <string.h>

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

size_t PointerSlot(const char* text, size_t slots) {
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(text) * 0x9e3779b97f4a7c15 >> 40) % slots;
}

}  // namespace

// 64-bit FNV-1a with a final mix. The names come from the host itself, so deliberate collisions are no
// concern.
uint64_t Names::Hash(const char* text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<uint8_t>(text[i])) * 0x100000001b3;
  return (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
}

bool Names::HasTables() {
  if (tables_ == nullptr) tables_ = static_cast<Tables*>(Pages(sizeof(Tables)));
  return tables_ != nullptr;
}

uint32_t Names::Identify(const char* text) {
  if (!HasTables() || text == nullptr) {
    CountDrop(GPUSONDE_GPU_DROP_UNREADABLE);
    return GPUSONDE_GPU_OTHER_NAME;
  }
  Pointer& shortcut = tables_->pointers[PointerSlot(text, kPointers)];
  if (shortcut.text == text) return shortcut.id;
  size_t length = 0;
  bool cut = false;
  if (!ReadText(text, tables_->scratch, sizeof tables_->scratch, length, cut)) {
    CountDrop(GPUSONDE_GPU_DROP_UNREADABLE);
    return GPUSONDE_GPU_OTHER_NAME;
  }
  const uint32_t id = Find(tables_->scratch, length, cut, Hash(tables_->scratch, length));
  if (id == GPUSONDE_GPU_OTHER_NAME)
    CountDrop(GPUSONDE_GPU_DROP_NAMES);
  else
    shortcut = {text, id};
  return id;
}

uint32_t Names::Intern(const char* text, uint32_t session, Batch& out) {
  const uint32_t id = Identify(text);
  SendOnce(id, session, out);
  return id;
}

uint32_t Names::InternFrom(const Names& other, uint32_t id, uint32_t session, Batch& out) {
  if (!HasTables()) {
    CountDrop(GPUSONDE_GPU_DROP_UNREADABLE);
    return GPUSONDE_GPU_OTHER_NAME;
  }
  const Name& name = other.tables_->names[id];
  const uint32_t here = Find(other.tables_->arena + name.offset, name.length, name.cut != 0, name.hash);
  if (here == GPUSONDE_GPU_OTHER_NAME) CountDrop(GPUSONDE_GPU_DROP_NAMES);
  SendOnce(here, session, out);
  return here;
}

void Names::ForgetPointers() {
  if (tables_ != nullptr) memset(tables_->pointers, 0, sizeof tables_->pointers);
}

uint32_t Names::Find(const char* text, size_t length, bool cut, uint64_t hash) {
  for (size_t slot = hash % kSlots;; slot = (slot + 1) % kSlots) {
    uint32_t& id = tables_->slots[slot];
    if (id == 0) {
      if (count_ == kMaxNames || arena_used_ + length > kArenaBytes) return GPUSONDE_GPU_OTHER_NAME;
      memcpy(tables_->arena + arena_used_, text, length);
      id = count_++;
      tables_->names[id] = {hash, static_cast<uint32_t>(arena_used_), static_cast<uint16_t>(length), cut, 0};
      arena_used_ += length;
      return id;
    }
    const Name& name = tables_->names[id];
    if (name.hash == hash && name.length == length && memcmp(tables_->arena + name.offset, text, length) == 0)
      return id;
  }
}

void Names::Resend(uint32_t session, Batch& out) {
  for (uint32_t id = 1; id < count_; ++id)
    if (tables_->names[id].sent == session) Send(id, session, out);
}

void Names::SendOnce(uint32_t id, uint32_t session, Batch& out) {
  if (id != GPUSONDE_GPU_OTHER_NAME && tables_->names[id].sent != session) Send(id, session, out);
}

void Names::Send(uint32_t id, uint32_t session, Batch& out) {
  Name& name = tables_->names[id];
  auto* record = static_cast<gpusonde_gpu_name*>(
      out.Add(session, GPUSONDE_GPU_NAME, sizeof(gpusonde_gpu_name) + name.length));
  record->id = id;
  record->length = name.length;
  record->cut = name.cut;
  memcpy(record + 1, tables_->arena + name.offset, name.length);
  name.sent = session;
}

}  // namespace gpusonde::inject
