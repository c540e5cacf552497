// SPDX-License-Identifier: Apache-2.0
// From addresses to names: how fast a profile of a large library is symbolised. libLLVM (some 130 MB, tens of
// thousands of exported functions) is mapped into this process like into a profiled one, and the samples are
// of its code. libdw, which eu-addr2line and many profilers use, does the same in the same run.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "agent/process_table.h"
#include "agent/rows.h"
#include "agent/stack_interner.h"
#include "base/time.h"

namespace gpusonde {
namespace {

constexpr const char* kLibrary = "libLLVM.so.19.1";  // comes with clang-19, which the build needs
constexpr int64_t kSamples = 1'000'000;
constexpr size_t kAddresses = 50'000;
constexpr size_t kStacks = 20'000;
constexpr size_t kDepth = 30;

[[noreturn]] void Die(std::string_view what) {
  fmt::print(stderr, "bench_symbols: {}\n", what);
  std::abort();
}

// The agent's symbolisation of stacks, with nothing read yet.
struct Namer {
  Namer() {
    if (!processes.Follow(::getpid()).has_value()) Die("this process can't be read from /proc");
  }
  // The id of a stack of user frames, leaf first.
  Id128 Intern(std::span<const uint64_t> stack) {
    gpusonde_stack_counts counts{};
    counts.user_frames = static_cast<uint16_t>(stack.size());
    return stacks.Intern(self(), {counts, stack}, drops);
  }
  agent::Process& self() { return processes.FindSampled(::getpid(), MonotonicNow()); }

  symbols::BinaryTable binaries;
  agent::Rows rows;
  agent::ProcessTable processes{{.host = {}, .source = {1, 2}, .epoch_offset_ns = 0}, binaries, rows};
  symbols::LineClient lines{{}};  // without a child process
  agent::StackInterner stacks{{}, binaries, lines, rows};
  model::DropCounts drops;
};

// Addresses spread over the library's code, the same in every run of a process.
const std::vector<uint64_t>& Addresses() {
  static const std::vector<uint64_t> addresses = [] {
    if (::dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL) == nullptr) Die(::dlerror());
    Namer namer;
    agent::AddressSpace::Mapping code;
    namer.self().mappings.ForEach([&](const agent::AddressSpace::Mapping& mapping) {
      if (mapping.binary != nullptr && mapping.binary->name.starts_with("libLLVM")) code = mapping;
    });
    if (code.start == code.end) Die("libLLVM is not mapped");
    std::mt19937_64 random(1);
    std::vector<uint64_t> made(kAddresses);
    for (uint64_t& address : made) address = code.start + random() % (code.end - code.start);
    return made;
  }();
  return addresses;
}

std::vector<std::vector<uint64_t>> Stacks() {
  std::mt19937_64 random(2);
  std::vector<std::vector<uint64_t>> stacks(kStacks);
  for (std::vector<uint64_t>& stack : stacks)
    for (size_t depth = 0; depth < kDepth; ++depth) stack.push_back(Addresses()[random() % kAddresses]);
  return stacks;
}

// A million samples of some twenty thousand stacks, a few of which have most of them; includes reading the
// files.
void Symbolise(benchmark::State& state) {
  const auto stacks = Stacks();
  for (auto _ : state) {
    Namer namer;
    std::mt19937_64 random(3);
    for (int64_t i = 0; i < kSamples; ++i) {
      const double skewed = std::pow(static_cast<double>(random() >> 11) * 0x1p-53, 4);
      const auto& stack = stacks[static_cast<size_t>(skewed * kStacks)];
      benchmark::DoNotOptimize(namer.Intern(stack));
    }
    benchmark::DoNotOptimize(namer.rows.Take());
  }
  state.SetItemsProcessed(state.iterations() * kSamples);
}
BENCHMARK(Symbolise)->Name("samples of 30 frames named")->Unit(benchmark::kMillisecond);

// Every address once: the file is read, its symbols sorted, and each name found and demangled.
void NameAddresses(benchmark::State& state) {
  const auto& addresses = Addresses();
  for (auto _ : state) {
    Namer namer;
    for (const uint64_t address : addresses) benchmark::DoNotOptimize(namer.Intern({&address, 1}));
    benchmark::DoNotOptimize(namer.rows.Take());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(addresses.size()));
}
BENCHMARK(NameAddresses)->Name("distinct addresses named")->Unit(benchmark::kMillisecond);

// Only some: libdw scans the whole table for each.
void NameAddressesByLibdw(benchmark::State& state) {
  const auto addresses = std::span(Addresses()).first(500);
  const Dwfl_Callbacks callbacks{.find_elf = dwfl_linux_proc_find_elf,
                                 .find_debuginfo = [](auto...) { return -1; },
                                 .section_address = nullptr,
                                 .debuginfo_path = nullptr};
  for (auto _ : state) {
    Dwfl* dwfl = dwfl_begin(&callbacks);
    if (dwfl == nullptr || dwfl_linux_proc_report(dwfl, ::getpid()) != 0 ||
        dwfl_report_end(dwfl, nullptr, nullptr) != 0)
      Die("libdw can't read this process");
    for (const uint64_t address : addresses) {
      Dwfl_Module* module = dwfl_addrmodule(dwfl, address);
      benchmark::DoNotOptimize(module == nullptr ? nullptr : dwfl_module_addrname(module, address));
    }
    dwfl_end(dwfl);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(addresses.size()));
}
BENCHMARK(NameAddressesByLibdw)
    ->Name("distinct addresses named by libdw (mangled)")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpusonde

BENCHMARK_MAIN();
