// SPDX-License-Identifier: Apache-2.0
// Registration by nvcc's host code when a program starts: fat binaries and kernel stubs.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/cudart/runtime.h"

namespace simgpu::cudart {
namespace {

struct Binary {
  const void* image = nullptr;
  void* module = nullptr;  // loaded with its first kernel, as the runtime does by default since CUDA 11.7
};

struct Entry {
  Binary* binary = nullptr;
  std::string name;
  void* function = nullptr;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Binary>> binaries;
  std::map<const void*, Entry> entries;
};

Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

// The configuration that <<<…>>> stores for the stub called next.
struct Configuration {
  gpusonde_cudart_dim3 grid;
  gpusonde_cudart_dim3 block;
  size_t shared_bytes;
  void* stream;
};
thread_local std::vector<Configuration> configurations;

// The contents of __fatBinC_Wrapper_t, the argument of __cudaRegisterFatBinary (fatbinary_section.h).
struct FatBinaryWrapper {
  int32_t magic;
  int32_t version;
  const void* data;
  void* names;
};

}  // namespace

void* FunctionOf(const void* entry) {
  if (entry == nullptr) return nullptr;
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.entries.find(entry);
  if (found == registry.entries.end()) return const_cast<void*>(entry);  // a handle of cudaLibraryGetKernel
  Entry& registered = found->second;
  if (registered.function != nullptr) return registered.function;
  Binary& binary = *registered.binary;
  if (binary.module == nullptr && cuModuleLoadData(&binary.module, binary.image) != GPUSONDE_CU_SUCCESS)
    return nullptr;
  cuModuleGetFunction(&registered.function, binary.module, registered.name.c_str());
  return registered.function;
}

const char* SymbolOf(const void* entry) {
  Registry& registry = TheRegistry();
  {
    const std::lock_guard lock(registry.mutex);
    const auto found = registry.entries.find(entry);
    if (found != registry.entries.end()) return found->second.name.c_str();
  }
  const char* name = nullptr;
  return entry != nullptr && cuFuncGetName(&name, const_cast<void*>(entry)) == GPUSONDE_CU_SUCCESS ? name
                                                                                                   : nullptr;
}

}  // namespace simgpu::cudart

using namespace simgpu::cudart;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  Binary* binary = registry.binaries.emplace_back(std::make_unique<Binary>()).get();
  binary->image = static_cast<const FatBinaryWrapper*>(wrapper)->data;
  return reinterpret_cast<void**>(binary);
}

SIMGPU_EXPORT void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

// The modules stay loaded, as the program is about to end.
SIMGPU_EXPORT void __cudaUnregisterFatBinary(void** /*handle*/) {}

SIMGPU_EXPORT char __cudaInitModule(void** /*handle*/) { return 1; }

SIMGPU_EXPORT void __cudaRegisterFunction(void** handle, const char* host_stub, char* /*device_stub*/,
                                          const char* device_name, int /*thread_limit*/, void* /*thread_id*/,
                                          void* /*block_id*/, void* /*block*/, void* /*grid*/,
                                          int* /*warp_size*/) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.entries[host_stub] = {reinterpret_cast<Binary*>(handle), device_name, nullptr};
}

SIMGPU_EXPORT void __cudaRegisterVar(void** /*handle*/, char* /*host*/, char* /*device*/,
                                     const char* /*name*/, int /*external*/, size_t /*bytes*/,
                                     int /*constant*/, int /*global*/) {}

SIMGPU_EXPORT unsigned __cudaPushCallConfiguration(gpusonde_cudart_dim3 grid, gpusonde_cudart_dim3 block,
                                                   size_t shared_bytes, void* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

SIMGPU_EXPORT Error __cudaPopCallConfiguration(gpusonde_cudart_dim3* grid, gpusonde_cudart_dim3* block,
                                               size_t* shared_bytes, void* stream) {
  if (configurations.empty()) return Note(GPUSONDE_CU_ERROR_INVALID_VALUE);
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<void**>(stream) = last.stream;
  return GPUSONDE_CU_SUCCESS;
}

// A kernel handle is the stub itself; FunctionOf accepts both.
SIMGPU_EXPORT Error __cudaGetKernel(void** kernel, const void* entry) {
  if (kernel == nullptr) return Note(GPUSONDE_CU_ERROR_INVALID_VALUE);
  *kernel = const_cast<void*>(entry);
  return GPUSONDE_CU_SUCCESS;
}
