// SPDX-License-Identifier: Apache-2.0
// A CUDA program (driver API) for tests with the simulated GPU. It executes its arguments in order:
//   kernels=N         N kernels, alternately alpha (2 us) and beta (5 us)
//   rate=R,S          R kernels alpha a second for S seconds, or until SIGUSR1: then prints how many
//   mix=R,S           the same, and 10 kernels delta (8 ms) a second
//   steps=US,S        for S seconds steps of a kernel beta and 19 kernels alpha, each after US us of work;
//                     prints the median and the mean time of a step in ns; or until SIGUSR1
//   threads=T,N       T threads with a stream and N kernels each
//   copies=N sets=N   of 64 KiB
//   graph=NODES,N     a graph of kernels, captured, launched N times
//   replays=NODES,S   the same, launched again and again for S seconds
//   modules=N         N times: load a module, run its only kernel (gamma0, gamma1), unload it
//   swap              load a module and run its kernel older; at SIGUSR1 unload it and load another
//                     one, and run that one's kernel newer at the next SIGUSR1
//   load=K            loads the K-th kind of tests/inject/rival.cpp
//   rival=K           subscribes it to CUPTI, and prints the result
//   target=K          prints the library that its cuptiSubscribe is in
//   aside=R,S         R kernels alpha a second for S seconds, by a thread of their own
//   alarm=MS,CODE     a signal's handler calls exit(CODE) MS later
//   replace           loads a large one, and 0.6 s later a small library in its place
//   holder            prints whether somebody is subscribed to CUPTI
//   cupti             prints whether CUPTI was finalized
//   fork forkbare     a child ends
//   forklaunch        a child launches a kernel, in vain, and prints whether CUPTI was finalized in it
//   names=N           unloads a module and then loads N, each with a kernel of a name of 3,000 letters;
//   prints
//                     how long the slowest launch takes, ms
//   sync wait=MS      waits for the device, or so long
//   signal            waits for SIGUSR1
//   and those of client_nccl.cpp and client_nvtx.cpp
//   exit=CODE exec    ends, or executes this program again with the remaining arguments
//   dlclose           closes CUPTI's and our libraries more often than it opened them
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client.h"
#include "wire/nvidia/cupti.h"

namespace {

constexpr const char* kModule = R"(
.version 8.0
.target sm_70
.address_size 64
// simgpu: duration_ns=2000
.visible .entry alpha() { ret; }
// simgpu: duration_ns=5000
.visible .entry beta() { ret; }
// simgpu: duration_ns=8000000
.visible .entry delta() { ret; }
)";

// Calls a function of the driver or the runtime; exits if it fails.
template <class... Arguments>
void CallIn(const char* library, const char* name, Arguments... arguments) {
  const int result = Find<int(Arguments...)>(library, name)(arguments...);
  if (result == 0) return;
  std::printf("%s: %d\n", name, result);
  std::exit(101);
}
template <class... Arguments>
void Call(const char* name, Arguments... arguments) {
  CallIn("libcuda.so.1", name, arguments...);
}

using Handle = void*;

struct Program {
  Handle context = nullptr;
  Handle module = nullptr;
  Handle alpha = nullptr;
  Handle beta = nullptr;
  Handle stream = nullptr;
  uint64_t memory = 0;
  std::vector<char> host = std::vector<char>(size_t{64} << 10);
} g;

Handle Load(Handle* module, const char* name) {
  Handle function = nullptr;
  if (*module == nullptr) Call("cuModuleLoadData", module, static_cast<const void*>(kModule));
  Call("cuModuleGetFunction", &function, *module, name);
  return function;
}

Handle NewStream() {
  Handle stream = nullptr;
  Call("cuStreamCreate", &stream, 1U);
  return stream;
}

void Launch(Handle function, Handle stream) {
  Call("cuLaunchKernel", function, 16U, 1U, 1U, 128U, 1U, 1U, 0U, stream, static_cast<void**>(nullptr),
       static_cast<void**>(nullptr));
}

void Begin() {
  if (g.context != nullptr) return;
  Call("cuInit", 0U);
  Call("cuDevicePrimaryCtxRetain", &g.context, 0);
  Call("cuCtxSetCurrent", g.context);
  g.alpha = Load(&g.module, "alpha");
  g.beta = Load(&g.module, "beta");
  g.stream = NewStream();
  Call("cuMemAlloc_v2", &g.memory, g.host.size());
}

void Kernels(long count) {
  for (long i = 0; i < count; ++i) Launch(i % 2 == 0 ? g.alpha : g.beta, g.stream);
}

volatile std::sig_atomic_t ends_step = 0;

void AwaitSignal() {
  while (ends_step == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ends_step = 0;
}

void Rate(long per_second, long seconds) {
  const auto start = std::chrono::steady_clock::now();
  long i = 0;
  for (; i < per_second * seconds && ends_step == 0; ++i) {
    Launch(g.alpha, g.stream);
    if (i % 16 == 15)
      std::this_thread::sleep_until(start + std::chrono::nanoseconds(1'000'000'000L / per_second * (i + 1)));
  }
  if (ends_step == 0) return;
  std::printf("%ld\n", i);
  std::fflush(stdout);
}

void Mix(long per_second, long seconds) {
  Handle delta = Load(&g.module, "delta");
  Handle stream = NewStream();
  for (long i = 0; i < seconds * 10; ++i) {
    Launch(delta, stream);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    Kernels(per_second / 10);
    std::this_thread::sleep_until(end);
  }
}

void Steps(long work_us, long seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<int64_t> durations;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  for (auto begin = Clock::now(); begin < end && ends_step == 0;) {
    for (int kernel = 0; kernel < 20; ++kernel) {
      for (const auto work = Clock::now() + std::chrono::microseconds(work_us); Clock::now() < work;) {
      }
      Launch(kernel == 0 ? g.beta : g.alpha, g.stream);
    }
    const auto now = Clock::now();
    durations.push_back(std::chrono::nanoseconds(now - begin).count());
    begin = now;
  }
  const auto median = durations.begin() + static_cast<int64_t>(durations.size() / 2);
  std::ranges::nth_element(durations, median);
  const int64_t sum = std::accumulate(durations.begin(), durations.end(), int64_t{0});
  std::printf("%lld %lld\n", static_cast<long long>(*median),
              static_cast<long long>(sum / static_cast<int64_t>(durations.size())));
  std::fflush(stdout);
}

void Threads(long threads, long count) {
  std::vector<std::thread> running;
  for (long i = 0; i < threads; ++i)
    running.emplace_back([count] {
      Call("cuCtxSetCurrent", g.context);
      Handle stream = NewStream();
      for (long n = 0; n < count; ++n) Launch(g.alpha, stream);
    });
  for (std::thread& thread : running) thread.join();
}

Handle MakeGraph(long nodes) {
  Handle graph = nullptr;
  Handle executable = nullptr;
  Call("cuStreamBeginCapture_v2", g.stream, 0);
  Kernels(nodes);
  Call("cuStreamEndCapture", g.stream, &graph);
  Call("cuGraphInstantiateWithFlags", &executable, graph, uint64_t{0});
  return executable;
}

void Graph(long nodes, long launches) {
  const Handle executable = MakeGraph(nodes);
  for (long i = 0; i < launches; ++i) Call("cuGraphLaunch", executable, g.stream);
}

// For so long, launches of a graph of kernels, some always in flight.
void Replays(long nodes, long seconds) {
  const Handle executable = MakeGraph(nodes);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    for (long i = 0; i < 10; ++i) Call("cuGraphLaunch", executable, g.stream);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  Call("cuCtxSynchronize");
}

// A module with one kernel of this name, which is launched after before().
Handle LaunchOfNewModule(const std::string& name, void (*before)() = [] {}) {
  const std::string ptx =
      ".version 8.0\n.target sm_70\n.address_size 64\n// simgpu: duration_ns=1000\n"
      ".visible .entry " +
      name + "() { ret; }\n";
  Handle module = nullptr;
  Call("cuModuleLoadData", &module, static_cast<const void*>(ptx.c_str()));
  before();
  Launch(Load(&module, name.c_str()), g.stream);
  Call("cuCtxSynchronize");
  return module;
}

void Modules(long count) {
  for (long i = 0; i < count; ++i) Call("cuModuleUnload", LaunchOfNewModule("gamma" + std::to_string(i)));
}

void Names(long count) {
  using Clock = std::chrono::steady_clock;
  Modules(1);
  Clock::duration slowest{};
  for (long i = 0; i < count; ++i) {
    const std::string name = "epsilon" + std::to_string(i) + std::string(3000, 'n');
    const Clock::time_point begin = Clock::now();
    LaunchOfNewModule(name);
    slowest = std::max(slowest, Clock::now() - begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::printf("%ld\n",
              static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(slowest).count()));
  std::fflush(stdout);
}

void Swap() {
  const Handle old = LaunchOfNewModule("older");
  AwaitSignal();
  Call("cuModuleUnload", old);
  LaunchOfNewModule("newer", AwaitSignal);
}

void RuntimeCopies(long count) {
  constexpr int kHostToDevice = 1;
  void* const memory = reinterpret_cast<void*>(g.memory);  // NOLINT(performance-no-int-to-ptr): the device's
  for (long i = 0; i < count; ++i)
    CallIn("libcudart.so.13", "cudaMemcpyAsync", memory, static_cast<const void*>(g.host.data()),
           g.host.size(), kHostToDevice, g.stream);
}

// The one that was loaded with the program, if any.
const char* const kCupti =
    dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD) != nullptr ? "libcupti.so.12" : "libcupti.so.13";

gpusonde_cupti_result Subscribe(gpusonde_cupti_subscriber_handle& subscriber) {
  gpusonde_cupti_subscriber_params params{sizeof params, "another tool", nullptr, 0};
  const auto nothing = [](void*, uint32_t, uint32_t, const void*) {};
  return Find<gpusonde_cupti_subscribe_v2_fn>(kCupti, "cuptiSubscribe_v2")(&subscriber, nothing, nullptr,
                                                                           &params);
}

std::string PathOf(const char* library) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / library;
}

template <class Function>
Function* FindInRival(long kind, const char* name) {
  struct Kind {
    const char* library;
    int binding;
  };
  constexpr Kind kKinds[] = {{"lazy", RTLD_LAZY},     {"now", RTLD_LAZY},         {"direct", RTLD_LAZY},
                             {"lazy", RTLD_NOW},      {"slow_lazy", RTLD_LAZY},   {"slow_now", RTLD_LAZY},
                             {"slow_lazy", RTLD_NOW}, {"slow_direct", RTLD_LAZY}, {"early", RTLD_LAZY}};
  const std::string library = std::string("librival_") + kKinds[kind].library + ".so";
  return Find<Function>(PathOf(library.c_str()).c_str(), name, kKinds[kind].binding);
}

void SubscribeRival(long kind) {
  std::printf("%d\n", FindInRival<int()>(kind, "SubscribeAsRival")());
  std::fflush(stdout);
}

// In the background.
void RateAside(long per_second, long seconds) {
  std::thread([per_second, seconds] {
    Call("cuCtxSetCurrent", g.context);
    Rate(per_second, seconds);
  }).detach();
}

int g_exit_code = 0;

void ExitByAlarm(long in_ms, long code) {
  g_exit_code = static_cast<int>(code);
  signal(SIGALRM, [](int) {
    signal(SIGALRM, SIG_DFL);
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
    alarm(30);  // if the exit hangs
    std::exit(g_exit_code);
  });
  const itimerval timer{.it_interval = {},
                        .it_value = {.tv_sec = in_ms / 1000, .tv_usec = in_ms % 1000 * 1000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void PrintTargetOfRival(long kind) {
  Dl_info info{};
  dladdr(FindInRival<const void*()>(kind, "TargetOfRival")(), &info);
  std::printf("%s\n", std::filesystem::path(info.dli_fname).filename().c_str());
  std::fflush(stdout);
}

// The pages from a library's first to its last.
std::span<char> Place(void* library) {
  struct Search {
    const char* file;
    std::span<char> found;
  } search{.file = nullptr, .found = {}};
  link_map* map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map));
  search.file = map->l_name;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto& of = *static_cast<Search*>(argument);
        if (std::string_view(info->dlpi_name) != of.file) return 0;
        size_t bytes = 0;
        for (const ElfW(Phdr) & header : std::span(info->dlpi_phdr, info->dlpi_phnum))
          if (header.p_type == PT_LOAD) bytes = header.p_vaddr + header.p_memsz;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): as the loader has it
        of.found = {reinterpret_cast<char*>(info->dlpi_addr), (bytes + 4095) & ~size_t{4095}};
        return 1;
      },
      &search);
  return search.found;
}

void Reserve(char* at, size_t bytes) {
  if (mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
    std::exit(102);
}

// Another, smaller library is loaded at the address of an unloaded one, whose last pages can't be accessed
// any more.
void ReplaceRival() {
  const std::string replacement = PathOf("librival_relocation.so");
  void* library = dlopen(replacement.c_str(), RTLD_NOW);
  const size_t bytes = Place(library).size();
  dlclose(library);
  library = dlopen(PathOf("librival_large.so").c_str(), RTLD_NOW);
  const std::span<char> place = Place(library);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  dlclose(library);
  Reserve(place.data() + bytes, place.size() - bytes);
  for (void* gap = nullptr;;
       Reserve(static_cast<char*>(gap), bytes)) {  // others, where it would be loaded first
    gap = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gap, bytes);
    if (gap == place.data()) break;
  }
  library = dlopen(replacement.c_str(), RTLD_NOW);
  std::printf("%s\n", Place(library).data() == place.data() ? "replaced" : "elsewhere");
  std::fflush(stdout);
}

void PrintHolder() {
  gpusonde_cupti_subscriber_handle subscriber = nullptr;
  const bool free = Subscribe(subscriber) == GPUSONDE_CUPTI_SUCCESS;
  if (free) Find<gpusonde_cupti_unsubscribe_fn>(kCupti, "cuptiUnsubscribe")(subscriber);
  std::printf("%s\n", free ? "free" : "held");
  std::fflush(stdout);
}

void PrintFinalized() {
  const bool finalized = Find<uint32_t()>(kCupti, "simgpuCuptiFinalizations")() > 0;
  std::printf("%s\n", finalized ? "finalized" : "initialized");
  std::fflush(stdout);
}

// Like Kineto: the last tool to register gets all buffers.
void TakeBuffers() {
  Find<gpusonde_cupti_activity_register_callbacks_fn>(kCupti, "cuptiActivityRegisterCallbacks")(
      [](uint8_t** buffer, size_t* bytes, size_t*) {
        *bytes = size_t{1} << 20;
        *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *bytes));
      },
      [](void*, uint32_t, uint8_t* buffer, size_t, size_t) { std::free(buffer); });
}

// A child calls the driver, which CUPTI still reports to its subscriber.
void ForkAndLaunch() {
  const pid_t child = fork();
  if (child == 0) {
    (void)Find<int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle,
                   void**, void**)>("libcuda.so.1", "cuLaunchKernel")(g.alpha, 1, 1, 1, 1, 1, 1, 0, g.stream,
                                                                      nullptr, nullptr);
    PrintFinalized();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

// By the system call alone: no handlers of forks are run.
void ForkBare() {
  const auto begin = std::chrono::steady_clock::now();
  const auto child = static_cast<pid_t>(syscall(SYS_fork));
  if (child == 0) std::exit(0);
  waitpid(child, nullptr, 0);
  std::printf("child %s\n",
              std::chrono::steady_clock::now() - begin < std::chrono::seconds(2) ? "ended" : "waited");
}

void Fork() {
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", WEXITSTATUS(status));
}

}  // namespace

void ForkWithin(long count, void (*use)()) {
  std::atomic<bool> stops = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!stops) use();
    });
  long hung = 0;
  for (long i = 0; i < count && hung == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      use();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) ++hung;
  }
  stops = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%ld hung\n", hung);
  std::fflush(stdout);
}

namespace {

void CloseLibraries() {
  for (const char* path : {kCupti, static_cast<const char*>(std::getenv("CUDA_INJECTION64_PATH"))}) {
    void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) {
      std::printf("%s is not loaded\n", path);
      continue;
    }
    for (int i = 0; i < 3; ++i) dlclose(library);
  }
}

void Do(std::string_view word, long first, long second) {
  if (word == "subscribe") {
    gpusonde_cupti_subscriber_handle subscriber = nullptr;
    Subscribe(subscriber);
    return;
  }
  if (DoNccl(word, first)) return;
  if (word != "nvtx") Begin();  // whose children can't use the driver
  if (DoNvtx(word, first)) return;
  if (word == "kernels") Kernels(first);
  if (word == "rate") Rate(first, second);
  if (word == "aside") RateAside(first, second);
  if (word == "mix") Mix(first, second);
  if (word == "steps") Steps(first, second);
  if (word == "threads") Threads(first, second);
  if (word == "copies")
    for (long i = 0; i < first; ++i)
      Call("cuMemcpyHtoDAsync_v2", g.memory, static_cast<const void*>(g.host.data()), g.host.size(),
           g.stream);
  if (word == "sets")
    for (long i = 0; i < first; ++i)
      Call("cuMemsetD8Async", g.memory, static_cast<unsigned char>(0), g.host.size(), g.stream);
  if (word == "runtime") RuntimeCopies(first);
  if (word == "graph") Graph(first, second);
  if (word == "replays") Replays(first, second);
  if (word == "modules") Modules(first);
  if (word == "names") Names(first);
  if (word == "swap") Swap();
  if (word == "signal") AwaitSignal();
  if (word == "sync") Call("cuCtxSynchronize");
  if (word == "buffers") TakeBuffers();
  if (word == "holder") PrintHolder();
  if (word == "cupti") PrintFinalized();
  if (word == "load") FindInRival<int()>(first, "SubscribeAsRival");
  if (word == "target") PrintTargetOfRival(first);
  if (word == "rival") SubscribeRival(first);
  if (word == "alarm") ExitByAlarm(first, second);
  if (word == "replace") ReplaceRival();
  if (word == "fork") Fork();
  if (word == "forkbare") ForkBare();
  if (word == "forklaunch") ForkAndLaunch();
  if (word == "dlclose") CloseLibraries();
  if (word == "wait") std::this_thread::sleep_for(std::chrono::milliseconds(first));
  if (word == "exit") std::exit(static_cast<int>(first));
  if (word == "_exit") _exit(0);
  if (word == "abort") std::abort();
}

}  // namespace

int main(int count, char** arguments) {
  std::signal(SIGUSR1, [](int) { ends_step = 1; });
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string value(equals == std::string_view::npos ? "" : argument.substr(equals + 1));
    if (argument == "exec") {
      arguments[i] = arguments[0];
      execv("/proc/self/exe", arguments + i);
      return 127;
    }
    char* rest = nullptr;
    const long first = std::strtol(value.c_str(), &rest, 10);
    Do(argument.substr(0, equals), first, *rest == ',' ? std::strtol(rest + 1, nullptr, 10) : 0);
  }
}
