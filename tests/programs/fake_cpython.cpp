// SPDX-License-Identifier: Apache-2.0
// fake_cpython SECONDS: imitates CPython 3.12 by its symbols and by the data that profilers read: a thread's
// state, frames, code objects and strings. In every second turn its only frame is of the function `honest`;
// in the others another thread keeps falsifying the frames: wild pointers, cycles, lengths beyond all memory,
// pages that disappear. Prints the number of turns.
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>

#include "burn.h"
#include "symbols/python_layout.h"

// The symbols by which an interpreter is recognised, with CPython's names.
extern "C" {
[[gnu::used]] alignas(8) std::array<uint8_t, 4096> _PyRuntime{};   // NOLINT
[[gnu::used]] extern const uint32_t Py_Version = 0x030c01f0;       // NOLINT
[[gnu::used]] alignas(8) std::array<uint8_t, 64> PyCode_Type{};    // NOLINT
[[gnu::noinline, gnu::used]] void _PyEval_EvalFrameDefault(long);  // NOLINT
}

namespace {

constexpr size_t kWords = 16'384;
constexpr size_t kPageWords = 512;
constexpr size_t kPages = kWords / kPageWords;
constexpr int64_t kWorkNs = 2'000'000;

// In words from the begin of the heap, whose first page is valid.
constexpr size_t kTrueWords = kPageWords;
constexpr size_t kState = 0, kCurrent = 16, kCode = 32, kName = 96, kFile = 112, kLines = 128, kFrame = 160;

std::atomic<bool> done = false;
uint64_t* heap = nullptr;

uint64_t AddressOf(size_t word) { return std::bit_cast<uint64_t>(heap + word); }

template <class Value>
void Put(size_t word, size_t offset, Value value) {
  std::memcpy(reinterpret_cast<char*>(heap + word) + offset, &value, sizeof value);
}

// Objects begin with their reference count and type.
void PutString(const gpusonde::symbols::PythonLayout& layout, size_t word, std::string_view text) {
  constexpr uint32_t kCompactAscii = 1 << 2 | 1 << 5 | 1 << 6;
  Put(word, 0, uint64_t{1});
  Put(word, 16, uint64_t{text.size()});
  Put(word, 32, kCompactAscii);
  std::memcpy(reinterpret_cast<char*>(heap + word) + layout.ascii_text, text.data(), text.size());
}

void TellTheTruth(const gpusonde::symbols::PythonLayout& layout) {
  PutString(layout, kName, "honest");
  PutString(layout, kFile, "/honest.py");
  Put(kLines, 16, uint64_t{2});
  Put(kLines, 32, uint16_t{0x00D8});
  Put(kCode, 0, uint64_t{1});
  Put(kCode, 8, std::bit_cast<uint64_t>(PyCode_Type.data()));
  Put(kCode, layout.walk.code_first_line, 41);
  Put(kCode, layout.walk.code_name, AddressOf(kName));
  Put(kCode, layout.code_qualified_name, AddressOf(kName));
  Put(kCode, layout.walk.code_file, AddressOf(kFile));
  Put(kCode, layout.code_lines, AddressOf(kLines));
  Put(kState, layout.walk.thread_frame, AddressOf(kCurrent));
  Put(kFrame, layout.walk.frame_code, AddressOf(kCode));
}

// A word that is plausible in an interpreter, or not.
uint64_t Lie(std::mt19937_64& chance) {
  switch (chance() % 8) {
    case 0:
      return chance();
    case 1:
      return chance() | 0xFFFF'8000'0000'0000;  // a kernel address
    case 2:
      return 0;
    case 3:
      return chance() % 256;
    case 4:
      return AddressOf(kCode);
    default:
      return AddressOf(chance() % kWords);
  }
}

void TellLies() {
  std::mt19937_64 chance(1);
  while (!done) {
    for (int i = 0; i < 2000; ++i) {
      const size_t word = kTrueWords + chance() % (kWords - kTrueWords);
      std::atomic_ref(heap[word]).store(Lie(chance), std::memory_order_relaxed);
    }
    uint64_t* page = heap + kPageWords * (1 + chance() % (kPages - 1));
    ::mprotect(page, kPageWords * 8, PROT_NONE);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    ::mprotect(page, kPageWords * 8, PROT_READ | PROT_WRITE);
  }
}

}  // namespace

void _PyEval_EvalFrameDefault(long depth) {  // NOLINT
  if (depth > 0)
    _PyEval_EvalFrameDefault(depth - 1);
  else
    Burn(kWorkNs);
  asm volatile("");  // prevents a tail call
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::milliseconds(std::lround(1000 * std::atof(arguments[1])));
  heap = static_cast<uint64_t*>(
      ::mmap(nullptr, kWords * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const gpusonde::symbols::PythonLayout* layout = gpusonde::symbols::FindPythonLayout(Py_Version >> 16);
  pthread_key_t key{};
  if (heap == MAP_FAILED || layout == nullptr || ::pthread_key_create(&key, nullptr) != 0) return 1;
  TellTheTruth(*layout);
  ::pthread_setspecific(key, heap);
  const std::array<uint32_t, 2> tss = {1, key};
  std::memcpy(_PyRuntime.data() + layout->walk.tss_key, tss.data(), sizeof tss);

  std::thread liar(TellLies);
  long turns = 0;
  for (; std::chrono::steady_clock::now() < end; ++turns) {
    Put(kCurrent, layout->walk.frame_pointer, AddressOf(turns % 2 == 0 ? kFrame : kTrueWords));
    _PyEval_EvalFrameDefault(3);
  }
  done = true;
  liar.join();
  fmt::print("{} turns\n", turns);
}
