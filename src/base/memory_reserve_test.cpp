// SPDX-License-Identifier: Apache-2.0
#include "base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace gpusonde {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
using Pieces = std::vector<std::unique_ptr<char[]>>;

// Takes all memory that `operator new` gives.
void TakeAll(Pieces& pieces) {
  pieces.reserve(1000);
  while (pieces.size() < pieces.capacity()) pieces.push_back(std::make_unique<char[]>(kPiece));
}

bool CanAllocate() {
  try {
    return std::make_unique<char[]>(kPiece) != nullptr;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// What it does while it unwinds needs memory.
struct Answers {
  bool& answered;
  ~Answers() { answered = CanAllocate(); }
};

void Check(bool ok, const char* what) {
  if (ok) return;
  std::fputs(what, stderr);
  std::_Exit(1);
}

// Without memory for more, on a process of its own.
void RunWithoutMemory(bool keeps) {
  if (keeps) KeepMemoryInReserve();
  const rlimit limit{.rlim_cur = 100 << 20, .rlim_max = 100 << 20};
  Check(::setrlimit(RLIMIT_DATA, &limit) == 0, "no limit");
  for (int turn = 0; turn < 3; ++turn) {
    Pieces pieces;
    bool answered = false;
    try {
      const Answers answers{answered};
      TakeAll(pieces);
      Check(false, "the limit isn't reached");
    } catch (const std::bad_alloc&) {
      Check(answered == keeps, "while it unwound");
      Check(CanAllocate() == keeps, "while it was handled");
    }
    Check(!CanAllocate() || keeps, "what was drawn is free again");
    pieces.clear();
    RefillMemoryReserve();
  }
  Pieces pieces;
  try {
    TakeAll(pieces);
  } catch (const std::bad_alloc&) {
    Check(!pieces.empty(), "there was no memory");
  }
  RefillMemoryReserve();
  DrawOnMemoryReserve();
  Check(CanAllocate() == keeps, "on a thread that draws on it");
  std::_Exit(0);
}

TEST(MemoryReserve, IsThereWhereMemoryRanOut) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more memory than the limit";
#endif
  EXPECT_EXIT(RunWithoutMemory(true), testing::ExitedWithCode(0), "");
}

TEST(MemoryReserve, WithoutOneThereIsNone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more memory than the limit";
#endif
  EXPECT_EXIT(RunWithoutMemory(false), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gpusonde
