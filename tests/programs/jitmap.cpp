// SPDX-License-Identifier: Apache-2.0
// jitmap [SECONDS]: spends its time (default 2 s) in code that it generates itself, and says so to profilers
// in /tmp/perf-PID.map, which names that code `jit::spin`. As with other compilers at run time the map stays
// behind, for who looks at the profile later. Prints {"pid":…,"calls":…}.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

static_assert(sizeof(void*) == 8, "the code below is for x86-64");

namespace {

constexpr std::array<uint8_t, 11> kSpin = {
    0x55,              //       push %rbp
    0x48, 0x89, 0xE5,  //       mov  %rsp, %rbp
    0xFF, 0xCF,        // loop: dec  %edi
    0x75, 0xFC,        //       jnz  loop
    0x5D,              //       pop  %rbp
    0xC3,              //       ret
    0xCC,              //       int3
};
constexpr uint32_t kRounds = 1'000'000;

using Spin = void (*)(uint32_t rounds);

// Null, with a message, when the machine allows no generated code.
Spin Generate() {
  void* code = ::mmap(nullptr, kSpin.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) {
    std::perror("jitmap: map memory");
    return nullptr;
  }
  std::memcpy(code, kSpin.data(), kSpin.size());
  if (::mprotect(code, kSpin.size(), PROT_READ | PROT_EXEC) != 0) {
    std::perror("jitmap: make memory executable");
    return nullptr;
  }
  return std::bit_cast<Spin>(code);
}

bool WriteMap(Spin spin) {
  const std::string path = fmt::format("/tmp/perf-{}.map", ::getpid());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
  if (file == nullptr) {
    std::perror(path.c_str());
    return false;
  }
  fmt::print(file.get(), "{:x} {:x} jit::spin\n", std::bit_cast<uintptr_t>(spin), kSpin.size());
  return true;
}

[[gnu::noinline]] int64_t CallFor(Spin spin, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int64_t calls = 0;
  for (; std::chrono::steady_clock::now() < end; ++calls) spin(kRounds);
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 2;
  const Spin spin = Generate();
  if (spin == nullptr || !WriteMap(spin)) return 1;
  fmt::print(R"({{"pid":{},"calls":{}}})"
             "\n",
             ::getpid(), CallFor(spin, seconds));
}
