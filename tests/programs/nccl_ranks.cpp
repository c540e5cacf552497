// SPDX-License-Identifier: Apache-2.0
// A job of N ranks on the simulated NCCL, a process each: in each step a rank works for a while, then sums
// with all others. One rank can be made slow.
//
//   nccl_ranks --ranks 8 --steps 1000 [--work-us 5000] [--pids FILE] [--slow RANK --slow-us 20000
//   --slow-after 200
//              [--busy]]
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Options {
  int ranks = 2, steps = 100, work_us = 5000, slow = -1, slow_us = 0, slow_after = 0;
  bool busy = false;
  std::string pids;
};

struct UniqueId {
  std::array<char, 128> bytes;
};
using Communicator = void*;

struct Library {
  int (*get_unique_id)(UniqueId*);
  int (*init_rank)(Communicator*, int, UniqueId, int);
  int (*destroy)(Communicator);
  int (*get_async_error)(Communicator, int*);
  int (*all_reduce)(const void*, void*, size_t, int, int, Communicator, void*);
};

template <class Function>
void Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function != nullptr) return;
  fmt::print(stderr, "nccl_ranks: no {} in libnccl.so.2\n", name);
  std::exit(2);
}

Library Open() {
  void* library = ::dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) {
    fmt::print(stderr, "nccl_ranks: {}\n", ::dlerror());
    std::exit(2);
  }
  Library functions{};
  Find(library, "ncclGetUniqueId", functions.get_unique_id);
  Find(library, "ncclCommInitRank", functions.init_rank);
  Find(library, "ncclCommDestroy", functions.destroy);
  Find(library, "ncclCommGetAsyncError", functions.get_async_error);
  Find(library, "ncclAllReduce", functions.all_reduce);
  return functions;
}

void Work(int us, bool busy) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  if (!busy) return std::this_thread::sleep_until(end);
  while (std::chrono::steady_clock::now() < end) {
  }
}

int RunRank(const Library& nccl, const UniqueId& id, int rank, const Options& options) {
  ::prctl(PR_SET_NAME, fmt::format("rank{}", rank).c_str());
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Communicator communicator = nullptr;
  if (nccl.init_rank(&communicator, options.ranks, id, rank) != 0) return 1;
  for (int step = 0; step < options.steps; ++step) {
    Work(options.work_us, false);
    if (rank == options.slow && step >= options.slow_after) Work(options.slow_us, options.busy);
    constexpr size_t kCount = 262'144;
    constexpr int kFloat32 = 7, kSum = 0;
    if (nccl.all_reduce(nullptr, nullptr, kCount, kFloat32, kSum, communicator, nullptr) != 0) return 1;
    for (int error = 1; error != 0;) {
      if (nccl.get_async_error(communicator, &error) != 0) return 1;
      if (error != 0) std::this_thread::sleep_for(std::chrono::microseconds(options.work_us / 10));
    }
  }
  return nccl.destroy(communicator);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--busy") {
      options.busy = true;
      continue;
    }
    if (i + 1 == argc) return 2;
    const char* value = argv[++i];
    if (name == "--ranks") options.ranks = std::atoi(value);
    if (name == "--steps") options.steps = std::atoi(value);
    if (name == "--work-us") options.work_us = std::atoi(value);
    if (name == "--slow") options.slow = std::atoi(value);
    if (name == "--slow-us") options.slow_us = std::atoi(value);
    if (name == "--slow-after") options.slow_after = std::atoi(value);
    if (name == "--pids") options.pids = value;
  }
  const Library nccl = Open();
  UniqueId id{};
  if (nccl.get_unique_id(&id) != 0) return 1;
  std::vector<pid_t> children;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) return 1;
    if (child == 0) std::exit(RunRank(nccl, id, rank, options));
    children.push_back(child);
  }
  if (!options.pids.empty()) {
    std::FILE* file = std::fopen(options.pids.c_str(), "w");
    if (file == nullptr) return 1;
    for (const pid_t child : children) fmt::print(file, "{}\n", child);
    std::fclose(file);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) failed = 1;
  }
  return failed;
}
