// SPDX-License-Identifier: Apache-2.0
// A CUDA program (driver API) for tests with the simulated GPU. It does what its arguments say, in their
// order:
//   kernels=N         N kernels by turns alpha (2 us) and beta (5 us)
//   rate=R,S          R kernels alpha a second for S seconds
//   threads=T,N       T threads with a stream and N kernels each
//   copies=N sets=N   of 64 KiB
//   graph=NODES,N     a graph of kernels, captured, launched N times
//   modules=N         N times: load a module, run its kernel gamma, unload it
//   sync              waits for the device
//   wait=MS exit=CODE
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr const char* kModule = R"(
.version 8.0
.target sm_70
.address_size 64
// simgpu: duration_ns=2000
.visible .entry alpha() { ret; }
// simgpu: duration_ns=5000
.visible .entry beta() { ret; }
// simgpu: duration_ns=1000
.visible .entry gamma() { ret; }
)";

// A function of the driver; the program ends when there is none, or when one fails.
template <class... Arguments>
void Call(const char* name, Arguments... arguments) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* function = driver == nullptr ? nullptr : dlsym(driver, name);
  if (function == nullptr) {
    std::printf("no %s\n", name);
    std::exit(100);
  }
  const int result = reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
  if (result == 0) return;
  std::printf("%s: %d\n", name, result);
  std::exit(101);
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

void Rate(long per_second, long seconds) {
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < per_second * seconds; ++i) {
    Launch(g.alpha, g.stream);
    if (i % 16 == 15)
      std::this_thread::sleep_until(start + std::chrono::nanoseconds(1'000'000'000L / per_second * (i + 1)));
  }
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

void Graph(long nodes, long launches) {
  Handle graph = nullptr;
  Handle executable = nullptr;
  Call("cuStreamBeginCapture_v2", g.stream, 0);
  Kernels(nodes);
  Call("cuStreamEndCapture", g.stream, &graph);
  Call("cuGraphInstantiateWithFlags", &executable, graph, uint64_t{0});
  for (long i = 0; i < launches; ++i) Call("cuGraphLaunch", executable, g.stream);
}

void Modules(long count) {
  for (long i = 0; i < count; ++i) {
    Handle module = nullptr;
    Launch(Load(&module, "gamma"), g.stream);
    Call("cuCtxSynchronize");
    Call("cuModuleUnload", module);
  }
}

void Do(std::string_view word, long first, long second) {
  if (word == "kernels") Kernels(first);
  if (word == "rate") Rate(first, second);
  if (word == "threads") Threads(first, second);
  if (word == "copies")
    for (long i = 0; i < first; ++i)
      Call("cuMemcpyHtoDAsync_v2", g.memory, static_cast<const void*>(g.host.data()), g.host.size(),
           g.stream);
  if (word == "sets")
    for (long i = 0; i < first; ++i)
      Call("cuMemsetD8Async", g.memory, static_cast<unsigned char>(0), g.host.size(), g.stream);
  if (word == "graph") Graph(first, second);
  if (word == "modules") Modules(first);
  if (word == "sync") Call("cuCtxSynchronize");
  if (word == "wait") std::this_thread::sleep_for(std::chrono::milliseconds(first));
  if (word == "exit") std::exit(static_cast<int>(first));
}

}  // namespace

int main(int count, char** arguments) {
  Begin();
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string value(equals == std::string_view::npos ? "" : argument.substr(equals + 1));
    char* rest = nullptr;
    const long first = std::strtol(value.c_str(), &rest, 10);
    Do(argument.substr(0, equals), first, *rest == ',' ? std::strtol(rest + 1, nullptr, 10) : 0);
  }
}
