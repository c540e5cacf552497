// SPDX-License-Identifier: Apache-2.0
#include "cuda.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace hpc {

struct Cuda::Functions {
  void* library;
  int (*init)(unsigned flags);
  int (*error_name)(int result, const char** name);
  int (*device_name)(char* name, int bytes, int device);
  int (*retain)(void** context, int device);
  int (*set_current)(void* context);
  int (*allocate)(Memory* memory, size_t bytes);
  int (*allocate_host)(void** memory, size_t bytes);
  int (*make_stream)(Stream* stream, unsigned flags);
  int (*make_event)(Event* event, unsigned flags);
  int (*load)(void** module, const void* image);
  int (*find)(Kernel* kernel, void* module, const char* name);
  int (*launch)(Kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** params,
                void** extra);
  int (*copy_to_device)(Memory target, const void* source, size_t bytes, Stream stream);
  int (*copy_to_host)(void* target, Memory source, size_t bytes, Stream stream);
  int (*clear)(Memory target, unsigned char value, size_t bytes, Stream stream);
  int (*record)(Event event, Stream stream);
  int (*wait)(Stream stream, Event event, unsigned flags);
  int (*synchronize)(Stream stream);
};

namespace {

template <class Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

constexpr unsigned kNonBlocking = 1;

}  // namespace

std::expected<Cuda, std::string> Cuda::Open() {
  static Functions f;
  f.library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (f.library == nullptr)
    return std::unexpected(
        "libcuda.so.1 can't be loaded. Without a GPU, use the simulated one: build/release/bin/simgpu run -- "
        "build/release/bin/hpc");
  const bool complete =
      Find(f.library, "cuInit", f.init) && Find(f.library, "cuGetErrorName", f.error_name) &&
      Find(f.library, "cuDeviceGetName", f.device_name) &&
      Find(f.library, "cuDevicePrimaryCtxRetain", f.retain) &&
      Find(f.library, "cuCtxSetCurrent", f.set_current) && Find(f.library, "cuMemAlloc_v2", f.allocate) &&
      Find(f.library, "cuMemAllocHost_v2", f.allocate_host) &&
      Find(f.library, "cuStreamCreate", f.make_stream) && Find(f.library, "cuEventCreate", f.make_event) &&
      Find(f.library, "cuModuleLoadData", f.load) && Find(f.library, "cuModuleGetFunction", f.find) &&
      Find(f.library, "cuLaunchKernel", f.launch) &&
      Find(f.library, "cuMemcpyHtoDAsync_v2", f.copy_to_device) &&
      Find(f.library, "cuMemcpyDtoHAsync_v2", f.copy_to_host) &&
      Find(f.library, "cuMemsetD8Async", f.clear) && Find(f.library, "cuEventRecord", f.record) &&
      Find(f.library, "cuStreamWaitEvent", f.wait) && Find(f.library, "cuStreamSynchronize", f.synchronize);
  if (!complete) return std::unexpected("libcuda.so.1 is too old: this needs CUDA 12 or newer");
  if (const int result = f.init(0); result != 0)
    return std::unexpected(
        fmt::format("CUDA doesn't start (error {}): is there a device, and may you use it?", result));
  Cuda cuda;
  cuda.functions_ = &f;
  void* context = nullptr;
  cuda.Check(f.retain(&context, 0), "cuDevicePrimaryCtxRetain");
  cuda.Check(f.set_current(context), "cuCtxSetCurrent");
  return cuda;
}

void Cuda::Check(int result, const char* call) const {
  if (result == 0) return;
  const char* name = nullptr;
  functions_->error_name(result, &name);
  fmt::print(stderr, "hpc: {} failed: {}\n", call, name == nullptr ? "unknown error" : name);
  std::exit(1);
}

std::string Cuda::device_name() const {
  char name[128] = "";
  Check(functions_->device_name(name, sizeof name, 0), "cuDeviceGetName");
  return name;
}

Cuda::Memory Cuda::Allocate(size_t bytes) const {
  Memory memory = 0;
  Check(functions_->allocate(&memory, bytes), "cuMemAlloc");
  return memory;
}

void* Cuda::AllocatePinned(size_t bytes) const {
  void* memory = nullptr;
  Check(functions_->allocate_host(&memory, bytes), "cuMemAllocHost");
  return memory;
}

Cuda::Stream Cuda::MakeStream() const {
  Stream stream = nullptr;
  Check(functions_->make_stream(&stream, kNonBlocking), "cuStreamCreate");
  return stream;
}

Cuda::Event Cuda::MakeEvent() const {
  Event event = nullptr;
  Check(functions_->make_event(&event, 0), "cuEventCreate");
  return event;
}

Cuda::Kernel Cuda::Load(const char* ptx, const char* name) const {
  void* module = nullptr;
  Kernel kernel = nullptr;
  Check(functions_->load(&module, ptx), "cuModuleLoadData");
  Check(functions_->find(&kernel, module, name), "cuModuleGetFunction");
  return kernel;
}

void Cuda::Launch(Kernel kernel, unsigned blocks, unsigned threads, Stream stream,
                  uint64_t duration_ns) const {
  void* params[] = {&duration_ns};
  Check(functions_->launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, params, nullptr),
        "cuLaunchKernel");
}

void Cuda::CopyToDevice(Memory target, const void* source, size_t bytes, Stream stream) const {
  Check(functions_->copy_to_device(target, source, bytes, stream), "cuMemcpyHtoDAsync");
}

void Cuda::CopyToHost(void* target, Memory source, size_t bytes, Stream stream) const {
  Check(functions_->copy_to_host(target, source, bytes, stream), "cuMemcpyDtoHAsync");
}

void Cuda::Clear(Memory target, size_t bytes, Stream stream) const {
  Check(functions_->clear(target, 0, bytes, stream), "cuMemsetD8Async");
}

void Cuda::Record(Event event, Stream stream) const {
  Check(functions_->record(event, stream), "cuEventRecord");
}

void Cuda::Wait(Stream stream, Event event) const {
  Check(functions_->wait(stream, event, 0), "cuStreamWaitEvent");
}

void Cuda::Synchronize(Stream stream) const { Check(functions_->synchronize(stream), "cuStreamSynchronize"); }

}  // namespace hpc
