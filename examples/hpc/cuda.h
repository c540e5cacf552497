// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

namespace hpc {

// The part of the CUDA driver API that the example needs, loaded at run time: it builds and starts without
// CUDA. A failing call ends the program with a message.
class Cuda {
 public:
  using Stream = void*;
  using Event = void*;
  using Kernel = void*;
  using Memory = uint64_t;

  // The first device. The error says what is missing and what to do.
  static std::expected<Cuda, std::string> Open();

  std::string device_name() const;
  Memory Allocate(size_t bytes) const;
  void* AllocatePinned(size_t bytes) const;
  Stream MakeStream() const;
  Event MakeEvent() const;
  // The kernel `name` of a module in PTX.
  Kernel Load(const char* ptx, const char* name) const;

  void Launch(Kernel kernel, unsigned blocks, unsigned threads, Stream stream, uint64_t duration_ns) const;
  void CopyToDevice(Memory target, const void* source, size_t bytes, Stream stream) const;
  void CopyToHost(void* target, Memory source, size_t bytes, Stream stream) const;
  void Clear(Memory target, size_t bytes, Stream stream) const;
  void Record(Event event, Stream stream) const;
  void Wait(Stream stream, Event event) const;
  void Synchronize(Stream stream) const;

 private:
  void Check(int result, const char* call) const;

  struct Functions;
  const Functions* functions_ = nullptr;  // never freed
};

}  // namespace hpc
