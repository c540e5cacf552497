// SPDX-License-Identifier: Apache-2.0
#include "inject/cupti.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

// CUPTI_API_VERSION of CUDA 12.0, the first version whose kernel records have the layout that we read.
constexpr uint32_t kMinVersion = 18;

// When it is searched for again although no library was loaded: files may have been out of reach.
constexpr uint64_t kSearchAgainNs = uint64_t{60'000'000'000};

// Where libcupti is, relative to the folder of libcudart: in the same (toolkits, CUDA 13's wheels), in the
// folder of CUDA 12's wheels, in a toolkit's extras.
constexpr const char* kBesideRuntime[] = {"", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64", "/../lib64"};
constexpr const char* kInToolkit[] = {"/lib64", "/extras/CUPTI/lib64", "/lib"};

struct Loaded {
  char cupti[PATH_MAX];
  char runtime_folder[PATH_MAX];
  int runtime_major;  // of libcudart; 0: none is loaded
};

void Note(Loaded& loaded, const char* path) {
  constexpr char kCupti[] = "libcupti.so";
  constexpr char kRuntime[] = "libcudart.so.";
  const char* name = FileName(path);
  if (strncmp(name, kCupti, sizeof kCupti - 1) == 0) {
    snprintf(loaded.cupti, sizeof loaded.cupti, "%s", path);
  } else if (strncmp(name, kRuntime, sizeof kRuntime - 1) == 0) {
    snprintf(loaded.runtime_folder, sizeof loaded.runtime_folder, "%.*s",
             static_cast<int>(name == path ? 0 : name - path - 1), path);
    loaded.runtime_major = atoi(name + sizeof kRuntime - 1);
  }
}

void* Try(const char* folder, const char* below, int major) {
  char path[PATH_MAX];
  const int length = snprintf(path, sizeof path, "%s%s/libcupti.so.%d", folder, below, major);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) return nullptr;
  return OpenLibrary(path, false);
}

void* OpenFor(int major, const Loaded& loaded) {
  if (loaded.runtime_folder[0] != '\0' && loaded.runtime_major == major)
    for (const char* below : kBesideRuntime)
      if (void* library = Try(loaded.runtime_folder, below, major)) return library;
  char soname[32];
  snprintf(soname, sizeof soname, "libcupti.so.%d", major);
  if (void* library = OpenLibrary(soname, false)) return library;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = getenv(variable); folder != nullptr && folder[0] == '/')
      for (const char* below : kInToolkit)
        if (void* library = Try(folder, below, major)) return library;
  char toolkit[32];
  snprintf(toolkit, sizeof toolkit, "/usr/local/cuda-%d", major);
  for (const char* folder : {static_cast<const char*>(toolkit), "/usr/local/cuda"})
    for (const char* below : kInToolkit)
      if (void* library = Try(folder, below, major)) return library;
  return nullptr;
}

void* Open() {
  static Loaded loaded;  // large, and this runs under the lock of control.cpp
  loaded = {};
  VisitLibraries(
      [](const char* path, void* context) {
        Note(*static_cast<Loaded*>(context), path);
        return true;
      },
      &loaded);
  if (loaded.cupti[0] != '\0') return OpenLibrary(loaded.cupti, true);
  if (loaded.runtime_major != 0) return OpenFor(loaded.runtime_major, loaded);
  if (void* library = OpenFor(13, loaded)) return library;
  return OpenFor(12, loaded);
}

template <class Function>
bool Resolve(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(FindSymbol(library, name));
  return function != nullptr;
}

bool ResolveAll(void* library, Cupti& cupti) {
  (void)Resolve(library, "cuptiSubscribe_v2", cupti.subscribe_v2);
  (void)Resolve(library, "cuptiFinalize", cupti.finalize);
  return Resolve(library, "cuptiGetVersion", cupti.get_version) &&
         Resolve(library, "cuptiSubscribe", cupti.subscribe) &&
         Resolve(library, "cuptiUnsubscribe", cupti.unsubscribe) &&
         Resolve(library, "cuptiEnableCallback", cupti.enable_callback) &&
         Resolve(library, "cuptiActivityEnable", cupti.activity_enable) &&
         Resolve(library, "cuptiActivityDisable", cupti.activity_disable) &&
         Resolve(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks) &&
         Resolve(library, "cuptiActivityRegisterTimestampCallback", cupti.register_timestamp) &&
         Resolve(library, "cuptiActivityFlushAll", cupti.flush_all) &&
         Resolve(library, "cuptiActivityGetNextRecord", cupti.get_next_record) &&
         Resolve(library, "cuptiActivityGetNumDroppedRecords", cupti.get_dropped) &&
         Resolve(library, "cuptiGetDeviceId", cupti.get_device_id) &&
         Resolve(library, "cuptiGetContextId", cupti.get_context_id) &&
         Resolve(library, "cuptiGetGraphId", cupti.get_graph_id) &&
         Resolve(library, "cuptiGetGraphNodeId", cupti.get_graph_node_id);
}

}  // namespace

const Cupti* FindCupti() {
  static Cupti cupti;
  static bool found = false;
  if (found) return &cupti;
  static uint64_t searched = 0;  // libraries
  static uint64_t search_again_ns = 0;
  const uint64_t loaded = LibrariesLoaded();
  if (loaded == searched && NowNs() < search_again_ns) return nullptr;
  searched = loaded;
  search_again_ns = NowNs() + kSearchAgainNs;
  void* library = Open();
  if (library == nullptr || !ResolveAll(library, cupti)) return nullptr;
  if (cupti.get_version(&cupti.version) != GPUSONDE_CUPTI_SUCCESS || cupti.version < kMinVersion)
    return nullptr;
  found = true;
  return &cupti;
}

}  // namespace gpusonde::inject
