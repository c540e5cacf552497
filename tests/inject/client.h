// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

// Parts of the client (client.cpp).

// A function of a library; exits if it is missing.
template <class Function>
Function* Find(const char* path, const char* name, int binding = RTLD_NOW) {
  void* library = dlopen(path, binding);
  void* function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) {
    std::printf("no %s in %s\n", name, path);
    std::exit(100);
  }
  return reinterpret_cast<Function*>(function);
}

// Forks up to `count` times while two other threads call `use`, as each child does, too. Prints how many
// children hang; ends with the first.
void ForkWithin(long count, void (*use)());

// Executes a word that calls the library as NCCL does (client_nccl.cpp); false for others.
bool DoNccl(std::string_view word, long value);

// The same of NVTX (client_nvtx.cpp).
bool DoNvtx(std::string_view word, long value);
