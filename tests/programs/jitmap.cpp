// SPDX-License-Identifier: Apache-2.0
// jitmap [SECONDS [FOLDER]]: spends its time (default 2 s) in generated code, described in /tmp/perf-PID.map,
// or, with a folder, in its jit-PID.dump: there the code is line 7 of /app/spin.js up to its loop, and line 9
// from there on. The function is named `jit::spin`. As with other run-time compilers the file is not removed.
// Prints {"pid":…,"calls":…}.
#include <elf.h>
#include <fcntl.h>
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

// Null, with a message, if the machine allows no generated code.
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

template <class... Values>
std::string BytesOf(Values... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return bytes;
}

std::string Record(uint32_t kind, const std::string& body) {
  return BytesOf(kind, static_cast<uint32_t>(16 + body.size()), uint64_t{0}) + body;
}

// tools/perf/Documentation/jitdump-specification.txt
bool WriteDump(Spin spin, const std::string& folder) {
  const uint64_t code = std::bit_cast<uintptr_t>(spin);
  const auto pid = static_cast<uint32_t>(::getpid());
  constexpr uint64_t kLoop = 4;
  const std::string lines = BytesOf(code, uint64_t{2}, code, int32_t{7}, int32_t{0}) + "/app/spin.js" + '\0' +
                            BytesOf(code + kLoop, int32_t{9}, int32_t{0}) + '\xff' + '\0';
  const std::string load = BytesOf(pid, pid, code, code, uint64_t{kSpin.size()}, uint64_t{1}) + "jit::spin" +
                           '\0' + std::string(reinterpret_cast<const char*>(kSpin.data()), kSpin.size());
  const std::string all = BytesOf(uint32_t{0x4A695444}, uint32_t{1}, uint32_t{40}, uint32_t{EM_X86_64},
                                  uint32_t{0}, pid, uint64_t{0}, uint64_t{0}) +
                          Record(2, lines) + Record(0, load);
  const std::string path = fmt::format("{}/jit-{}.dump", folder, pid);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  // Mapped as code, so that profilers get a mapping event.
  if (file < 0 || ::write(file, all.data(), all.size()) != static_cast<ssize_t>(all.size()) ||
      ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) {
    std::perror(path.c_str());
    return false;
  }
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
  if (spin == nullptr || !(argc > 2 ? WriteDump(spin, argv[2]) : WriteMap(spin))) return 1;
  fmt::print(R"({{"pid":{},"calls":{}}})"
             "\n",
             ::getpid(), CallFor(spin, seconds));
}
