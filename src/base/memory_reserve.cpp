// SPDX-License-Identifier: Apache-2.0
#include "base/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <new>

namespace gpusonde {
namespace {

constexpr size_t kBytes = size_t{4} << 20;

std::atomic<bool> is_kept = false;
std::atomic<void*> reserve = nullptr;
thread_local bool draws = false;

void OnNoMemory() {
  const bool may = draws || std::uncaught_exceptions() > 0 || std::current_exception() != nullptr;
  void* const given = may ? reserve.exchange(nullptr) : nullptr;
  if (given == nullptr) throw std::bad_alloc();
  ::munmap(given, kBytes);
}

}  // namespace

void KeepMemoryInReserve() {
  is_kept = true;
  RefillMemoryReserve();
  std::set_new_handler(OnNoMemory);
}

void RefillMemoryReserve() {
  if (!is_kept || reserve.load() != nullptr) return;
  // It counts from here on, whether or not it is touched.
  void* const taken = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken == MAP_FAILED) return;
  void* none = nullptr;
  if (!reserve.compare_exchange_strong(none, taken)) ::munmap(taken, kBytes);
}

void DrawOnMemoryReserve() { draws = true; }

}  // namespace gpusonde
