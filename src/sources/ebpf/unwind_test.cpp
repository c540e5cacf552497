// SPDX-License-Identifier: Apache-2.0
// Runs the BPF unwinder over images of processes: a child reports its own stack from libgcc's unwinder, which
// shares no code with ours, and stops; our unwinder then unwinds it from outside, and the two are compared.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "sources/ebpf/testing/user_mode_unwinder.h"
#include "sources/proc/process.h"
#include "symbols/binary_table.h"
#include "symbols/process_memory.h"
#include "unwind/compile.h"

namespace gpusonde::ebpf {
namespace {

constexpr size_t kMaxFrames = 64;
// Index of ReportAndStop's caller in backtrace(3): sanitizers have a frame of their own in between.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnFrames = 2;
#else
constexpr int kOwnFrames = 1;
#endif

// A child's report, in shared memory.
struct Report {
  void* frames[kMaxFrames];
  int count;
};

// As large as the kernel's; each table has shards of its own.
class Image {
 public:
  explicit Image(pid_t pid) : memory_(pid) {
    symbols::BinaryTable binaries;
    const std::vector<proc::MappedFile> files = proc::ReadExecutableMappings(pid).value();
    for (const proc::MappedFile& file : files) {
      gpusonde_unwind_mapping mapping{
          .start = file.start, .end = file.end, .bias = 0, .directory = 0, .pages = 0};
      const auto* binary = binaries.InternFromProcess(pid, file.path);
      if (const auto fd = symbols::BinaryTable::OpenFile(*binary, pid); fd.has_value())
        Add(unwind::CompileFile(fd->get(), file.path, rules_).value(), file, mapping);
      mappings_.push_back(mapping);
    }
    std::ranges::sort(mappings_, {}, &gpusonde_unwind_mapping::start);
  }

  // Callers' addresses, leaf first.
  std::vector<uint64_t> Unwind(const user_regs_struct& at, int& end) {
    std::vector<const __u32*> shards;
    for (const std::vector<__u32>& shard : shards_) shards.push_back(shard.data());
    const user_mode_image image{.read = Read,
                                .memory = &memory_,
                                .mappings = mappings_.data(),
                                .mapping_count = static_cast<__u32>(mappings_.size()),
                                .id = id_,
                                .shards = shards.data(),
                                .shard_count = static_cast<__u32>(shards.size()),
                                .rules = rules_.rules().data(),
                                .rule_count = static_cast<__u32>(rules_.rules().size()),
                                .thread_pointer = at.fs_base};
    const __u64 registers[] = {at.rax, at.rdx, at.rcx, at.rbx, at.rsi, at.rdi, at.rbp, at.rsp,
                               at.r8,  at.r9,  at.r10, at.r11, at.r12, at.r13, at.r14, at.r15};
    gpusonde_stack stack{};
    const __u32 count = user_mode_unwind(&image, at.rip, registers, &stack, &end);
    return {stack.words, stack.words + count};
  }

 private:
  static __u64 NextId() {
    static __u64 last = 0;
    return ++last;
  }

  static bool Read(void* memory, __u64 address, __u64* value) {
    const auto read = static_cast<const symbols::ProcessMemory*>(memory)->ReadAs<uint64_t>(address);
    if (read.has_value()) *value = *read;
    return read.has_value();
  }

  void Add(const unwind::Table& table, const proc::MappedFile& file, gpusonde_unwind_mapping& mapping) {
    const auto bias = unwind::BiasOf(table.segments, table.base, file.start, file.file_offset);
    if (table.pages.empty() || !bias.has_value()) return;
    std::vector<__u32> directory;
    shards_.emplace_back();
    for (const unwind::Table::Page& page : table.pages) {
      if (shards_.back().size() + page.count > GPUSONDE_UNWIND_SHARD_WORDS) shards_.emplace_back();
      const size_t first = (shards_.size() - 1) * GPUSONDE_UNWIND_SHARD_WORDS + shards_.back().size();
      directory.push_back(static_cast<__u32>(first));
      directory.push_back(page.count);
      const auto rows = table.rows.begin() + page.first;
      shards_.back().insert(shards_.back().end(), rows, rows + page.count);
    }
    mapping.bias = *bias;
    mapping.pages = static_cast<__u32>(table.pages.size());
    mapping.directory = static_cast<__u32>(shards_.size() * GPUSONDE_UNWIND_SHARD_WORDS);
    shards_.push_back(std::move(directory));
  }

  symbols::ProcessMemory memory_;
  unwind::RuleSet rules_;
  std::vector<gpusonde_unwind_mapping> mappings_;
  std::vector<std::vector<__u32>> shards_;
  const __u64 id_ = NextId();
};

Report* g_report;

// Reports the stack and stops. Not inlined, so that it is a frame in both lists.
[[gnu::noinline]] void ReportAndStop() {
  g_report->count = ::backtrace(g_report->frames, kMaxFrames);
  ::raise(SIGSTOP);
}

class Unwind : public testing::Test {
 protected:
  void SetUp() override {
    void* first[1];
    ::backtrace(first, 1);  // loads libgcc before the fork
    g_report = static_cast<Report*>(
        ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(g_report, MAP_FAILED);
  }
  void TearDown() override { ::munmap(g_report, sizeof(Report)); }

  // Runs `body` in a child until a thread has called ReportAndStop, and compares the stacks. `caller_frames`:
  // the minimum number of frames above ReportAndStop.
  void Check(const std::function<void()>& body, size_t caller_frames) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      body();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP) {  // the signals of the test itself
      ::ptrace(PTRACE_CONT, child, nullptr, WSTOPSIG(status));
      ASSERT_EQ(::waitpid(child, &status, 0), child);
    }
    ASSERT_TRUE(WIFSTOPPED(status));
    user_regs_struct registers{};
    ASSERT_EQ(::ptrace(PTRACE_GETREGS, child, nullptr, &registers), 0);
    Compare(child, registers, caller_frames);
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }

  static void Compare(pid_t child, const user_regs_struct& registers, size_t caller_frames) {
    int end = -1;
    const std::vector<uint64_t> found = Image(child).Unwind(registers, end);
    EXPECT_EQ(end, GPUSONDE_NATIVE_COMPLETE);
    // Both lists meet where ReportAndStop returns to.
    ASSERT_GT(g_report->count, kOwnFrames);
    const auto begin = std::ranges::find(found, reinterpret_cast<uint64_t>(g_report->frames[kOwnFrames]));
    ASSERT_NE(begin, found.end()) << "the caller of ReportAndStop isn't there";
    const auto callers = static_cast<size_t>(g_report->count - kOwnFrames);
    EXPECT_GE(callers, caller_frames);
    ASSERT_GE(static_cast<size_t>(found.end() - begin), callers);
    for (size_t i = 0; i < callers; ++i)
      // The address of a frame that a signal interrupted is reported as its pc + 1.
      EXPECT_LE(
          begin[static_cast<ptrdiff_t>(i)] - reinterpret_cast<uint64_t>(g_report->frames[i + kOwnFrames]), 1u)
          << "frame " << i;
  }
};

[[gnu::noinline]] long Recurse(long depth) {
  volatile char padding[100];
  padding[depth % 100] = 1;
  if (depth == 0) ReportAndStop();
  return depth == 0 ? 1 : Recurse(depth - 1) + padding[depth % 100];
}

TEST_F(Unwind, FollowsCallsWithinThisProgram) {
  Check([] { Recurse(10); }, 12);
}

TEST_F(Unwind, FollowsCallsThroughTheCLibraryAndBack) {
  Check(
      [] {
        int values[] = {2, 1};
        ::qsort(values, 2, sizeof(int), [](const void*, const void*) {
          ReportAndStop();
          return 0;
        });
      },
      4);
}

TEST_F(Unwind, LeavesASignalHandler) {
  Check(
      [] {
        ::signal(SIGUSR1, [](int) { ReportAndStop(); });
        ::raise(SIGUSR1);
      },
      5);
}

TEST_F(Unwind, FollowsTheFramesOfAThrowingFunction) {
  Check(
      [] {
        try {
          throw std::runtime_error("stop");
        } catch (const std::exception&) {
          Recurse(2);
        }
      },
      4);
}

TEST_F(Unwind, FollowsAnAlignedFrame) {
  // The compiler realigns the stack and describes the CFA with a DWARF expression.
  struct Aligned {
    [[gnu::noinline]] static void Call(long value) {
      alignas(64) volatile char buffer[128];
      buffer[value] = 1;
      ReportAndStop();
      ASSERT_EQ(buffer[value], 1);
    }
  };
  Check([] { Aligned::Call(3); }, 3);
}

TEST_F(Unwind, FollowsAFrameOfVariableSize) {
  struct Variable {
    [[gnu::noinline]] static void Call(size_t size) {
      auto* buffer = static_cast<volatile char*>(__builtin_alloca(size));
      buffer[0] = 1;
      ReportAndStop();
      buffer[1] = 2;
    }
  };
  Check([] { Variable::Call(1000); }, 3);
}

TEST_F(Unwind, CutsADeepStackAfterTheLastFrameThatFits) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    Recurse(GPUSONDE_MAX_FRAMES);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  user_regs_struct registers{};
  ASSERT_EQ(::ptrace(PTRACE_GETREGS, child, nullptr, &registers), 0);
  int end = -1;
  const std::vector<uint64_t> found = Image(child).Unwind(registers, end);
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  EXPECT_EQ(end, GPUSONDE_NATIVE_TRUNCATED);
  ASSERT_EQ(found.size(), size_t{GPUSONDE_MAX_FRAMES});
  // The outer half are calls of Recurse by itself.
  for (size_t i = found.size() / 2; i < found.size(); ++i) EXPECT_EQ(found[i], found.back()) << "frame " << i;
}

TEST_F(Unwind, EndsARandomStackWithAReason) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ReportAndStop();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  user_regs_struct registers{};
  ASSERT_EQ(::ptrace(PTRACE_GETREGS, child, nullptr, &registers), 0);
  Image image(child);
  for (uint64_t seed = 1; seed < 500; ++seed) {
    user_regs_struct wrong = registers;
    wrong.rip += seed * 7919 % 100'000;
    wrong.rsp += seed * 104'729 % 50'000;
    wrong.rbp = seed % 2 == 0 ? wrong.rsp + seed : seed * 0x9E3779B97F4A7C15;
    int end = -1;
    EXPECT_LE(image.Unwind(wrong, end).size(), size_t{GPUSONDE_MAX_FRAMES});
    EXPECT_TRUE(end >= 0 && end < GPUSONDE_NATIVE_ENDS);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

// A process with one file, which has the same rule everywhere, and a stack of given words.
class OneFile {
 public:
  // The rule has this number among those of all files.
  OneFile(__u64 id, __u32 rule_number, const gpusonde_unwind_rule& rule)
      : id_(id), row_(rule_number << 16), rules_(rule_number + 1) {
    rules_[rule_number] = rule;
  }

  std::vector<uint64_t> Unwind(uint64_t pc, std::vector<uint64_t> stack, int& end) {
    stack_ = std::move(stack);
    const gpusonde_unwind_mapping mapping{
        .start = kCode, .end = kCode + 0x1000, .bias = kCode, .directory = 0, .pages = 1};
    const std::array<__u32, 3> words{2, 1, row_};  // one page, whose first row is word 2
    const __u32* const shard = words.data();
    const user_mode_image image{.read = Read,
                                .memory = this,
                                .mappings = &mapping,
                                .mapping_count = 1,
                                .id = id_,
                                .shards = &shard,
                                .shard_count = 1,
                                .rules = rules_.data(),
                                .rule_count = static_cast<__u32>(rules_.size()),
                                .thread_pointer = 0};
    __u64 registers[GPUSONDE_UNWIND_REGISTERS] = {};
    registers[GPUSONDE_DWARF_RSP] = kStack;
    gpusonde_stack unwound{};
    const __u32 count = user_mode_unwind(&image, pc, registers, &unwound, &end);
    return {unwound.words, unwound.words + count};
  }

  static constexpr uint64_t kCode = 0x400000;

 private:
  static constexpr uint64_t kStack = 0x1000;  // its top

  static bool Read(void* memory, __u64 address, __u64* value) {
    const auto& stack = static_cast<const OneFile*>(memory)->stack_;
    const uint64_t index = (address - kStack) / sizeof(uint64_t);
    if (address % sizeof(uint64_t) != 0 || index >= stack.size()) return false;
    *value = stack[index];
    return true;
  }

  const __u64 id_;
  const __u32 row_;
  std::vector<gpusonde_unwind_rule> rules_;
  std::vector<uint64_t> stack_;
};

// A caller's address is at rsp + `offset`.
gpusonde_unwind_rule CallerAt(int32_t offset) {
  return {.cfa = GPUSONDE_CFA_REGISTER,
          .cfa_register = GPUSONDE_DWARF_RSP,
          .rbp = GPUSONDE_SAVED_NOT,
          .ra = GPUSONDE_SAVED_AT_CFA,
          .cfa_offset = offset + 8,
          .cfa_add = 0,
          .rbp_offset = 0,
          .ra_offset = -8};
}

TEST(UnwindRules, ARuleOfOneProcessIsNotThatOfAnotherAtTheSameAddress) {
  constexpr uint64_t kLeaf = OneFile::kCode + 0x10;
  OneFile outermost(1'000'001, 1, {.cfa = GPUSONDE_CFA_END});
  OneFile called(1'000'002, 2, CallerAt(8));
  for (int round = 0; round < 2; ++round) {
    int end = -1;
    EXPECT_EQ(outermost.Unwind(kLeaf, {0, kLeaf, 0, 0}, end), std::vector{kLeaf});
    EXPECT_EQ(end, GPUSONDE_NATIVE_COMPLETE);
    EXPECT_EQ(called.Unwind(kLeaf, {0, kLeaf, 0, 0}, end), std::vector(2, kLeaf));
    EXPECT_EQ(end, GPUSONDE_NATIVE_COMPLETE);
  }
}

TEST(UnwindStack, IsReadUpToItsLastWord) {
  constexpr uint64_t kCaller = OneFile::kCode + 0x20;
  for (const size_t frames : {1u, 20u, 100u}) {
    std::vector<uint64_t> stack;
    for (size_t i = 0; i < frames; ++i) {
      stack.insert(stack.end(), 10, 1);  // locals
      stack.push_back(i + 1 < frames ? kCaller : 0);
    }
    int end = -1;
    EXPECT_EQ(OneFile(1'000'003, 1, CallerAt(80)).Unwind(kCaller, std::move(stack), end),
              std::vector(frames, kCaller));
    EXPECT_EQ(end, GPUSONDE_NATIVE_COMPLETE) << frames;
  }
}

TEST(UnwindStack, EndsWithAReasonWhereItIsNotReadable) {
  constexpr uint64_t kCaller = OneFile::kCode + 0x20;
  int end = -1;
  EXPECT_EQ(OneFile(1'000'004, 1, CallerAt(16)).Unwind(kCaller, {1, 1, kCaller, 1}, end).size(), 2u);
  EXPECT_EQ(end, GPUSONDE_NATIVE_UNREADABLE);
}

}  // namespace
}  // namespace gpusonde::ebpf
