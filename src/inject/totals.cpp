// SPDX-License-Identifier: Apache-2.0
#include "inject/totals.h"

#include "inject/libc.h"

namespace gpusonde::inject {

void Totals::Clear() {
  for (size_t i = 0; i < count_; ++i) table_->entries[table_->used[i]] = {};
  count_ = 0;
}

void Totals::Add(uint32_t of, uint32_t device, uint32_t key, uint64_t start_ns, uint64_t end_ns,
                 uint64_t bytes) {
  if (table_ == nullptr) table_ = static_cast<Table*>(Pages(sizeof(Table)));
  if (table_ == nullptr) return CountDrop(GPUSONDE_GPU_DROP_TOTALS);
  const uint64_t mixed = ((uint64_t{key} << 32 | device) ^ uint64_t{of} << 57) * 0x9e3779b97f4a7c15;
  for (size_t slot = static_cast<size_t>(mixed >> 32) % kSlots;; slot = (slot + 1) % kSlots) {
    Entry& entry = table_->entries[slot];
    if (entry.of == 0) {
      if (count_ == kMaxEntries) return CountDrop(GPUSONDE_GPU_DROP_TOTALS);
      table_->used[count_++] = static_cast<uint16_t>(slot);
      entry.of = of;
      entry.device = device;
      entry.key = key;
    }
    if (entry.of != of || entry.device != device || entry.key != key) continue;
    ++entry.count;
    if (start_ns == 0 || end_ns < start_ns)
      ++entry.untimed;
    else
      entry.total_ns += end_ns - start_ns;
    entry.bytes += bytes;
    entry.changed = 1;
    return;
  }
}

void Totals::Resend(uint32_t session, Batch& out) const {
  for (size_t i = 0; i < count_; ++i) Send(table_->entries[table_->used[i]], session, out);
}

void Totals::Send(const Entry& entry, uint32_t session, Batch& out) {
  auto* record =
      static_cast<gpusonde_gpu_total*>(out.Add(session, GPUSONDE_GPU_TOTAL, sizeof(gpusonde_gpu_total)));
  record->of = entry.of;
  record->device = entry.device;
  record->key = entry.key;
  record->count = entry.count;
  record->untimed = entry.untimed;
  record->total_ns = entry.total_ns;
  record->bytes = entry.bytes;
}

}  // namespace gpusonde::inject
