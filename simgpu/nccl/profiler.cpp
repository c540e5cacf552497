// SPDX-License-Identifier: Apache-2.0
#include "simgpu/nccl/profiler.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace simgpu::nccl {
namespace {

// ncclDebugLogger_t; NCCL prints with NCCL_DEBUG.
void Log(int, unsigned long, const char*, int, const char*, ...) {}

// As NCCL: the name as given, then as the middle of a file's name.
void* OpenPlugin(const char* name) {
  if (name == nullptr || strcasecmp(name, "none") == 0) return nullptr;
  if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return ::dlopen(("libnccl-profiler-" + std::string(name) + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

int NewestKnown() {
  const char* text = std::getenv("SIMGPU_NCCL_PROFILER");
  return text == nullptr ? 6 : std::atoi(text);
}

template <class Interface>
bool Find(void* library, const char* symbol, const Interface*& interface) {
  interface = static_cast<const Interface*>(::dlsym(library, symbol));
  return interface != nullptr;
}

}  // namespace

Profiler& Profiler::Get() {
  static Profiler profiler;
  return profiler;
}

Profiler::Profiler() {
  void* library = OpenPlugin(std::getenv("NCCL_PROFILER_PLUGIN"));
  if (library == nullptr) return;
  const int newest = NewestKnown();
  if (newest >= 6 && Find(library, "ncclProfiler_v6", v5_))
    version_ = 6;
  else if (newest >= 5 && Find(library, "ncclProfiler_v5", v5_))
    version_ = 5;
  else if (newest >= 4 && Find(library, "ncclProfiler_v4", v4_))
    version_ = 4;
  else if (Find(library, "ncclProfiler_v3", v3_))
    version_ = 3;
}

void* Profiler::Init(uint64_t communicator, const char* name, int nodes, int ranks, int rank) {
  communicator_ = communicator;
  name_ = name;
  void* context = nullptr;
  if (version_ == 3) v3_->init(&context, &mask_);
  if (version_ == 4) v4_->init(&context, &mask_, name, communicator, nodes, ranks, rank, Log);
  if (version_ >= 5) v5_->init(&context, communicator, &mask_, name, nodes, ranks, rank, Log);
  return context;
}

void Profiler::Finalize(void* context) {
  if (context == nullptr) return;
  if (version_ == 3) v3_->finalize(context);
  if (version_ == 4) v4_->finalize(context);
  if (version_ >= 5) v5_->finalize(context);
}

void* Profiler::Start(void* context, gpusonde_nccl_event_v5 event) {
  void* handle = nullptr;
  if (version_ == 3) return StartV3(context, event);
  if (version_ == 4) return StartV4(context, event);
  if (version_ >= 5) v5_->start(context, &handle, &event);
  return handle;
}

void* Profiler::StartV4(void* context, const gpusonde_nccl_event_v5& event) {
  if (event.type > GPUSONDE_NCCL_NET_PLUGIN) return nullptr;
  gpusonde_nccl_event_v4 older{};
  older.type = static_cast<uint8_t>(event.type);
  older.parent = event.type == GPUSONDE_NCCL_COLL ? event.coll.group : event.parent;
  older.rank = event.rank;
  std::memcpy(older.words, event.words, sizeof older.words);
  void* handle = nullptr;
  v4_->start(context, &handle, &older);
  return handle;
}

void* Profiler::StartV3(void* context, const gpusonde_nccl_event_v5& event) {
  if (event.type > GPUSONDE_NCCL_NET_PLUGIN) return nullptr;
  gpusonde_nccl_event_v3 older{};
  older.type = static_cast<uint8_t>(event.type);
  older.parent = event.type == GPUSONDE_NCCL_COLL ? event.coll.group : event.parent;
  older.rank = event.rank;
  switch (event.type) {
    case GPUSONDE_NCCL_COLL:
      older.coll.communicator_name = name_.c_str();
      older.coll.communicator = communicator_;
      older.coll.sequence = event.coll.sequence;
      older.coll.operation = event.coll.operation;
      older.coll.count = event.coll.count;
      older.coll.root = event.coll.root;
      older.coll.datatype = event.coll.datatype;
      older.coll.max_channels = event.coll.channels;
      older.coll.warps = event.coll.warps;
      older.coll.algorithm = event.coll.algorithm;
      older.coll.protocol = event.coll.protocol;
      break;
    case GPUSONDE_NCCL_PROXY_OP:
      older.proxy_op = event.proxy_op;
      break;
    case GPUSONDE_NCCL_PROXY_STEP:
      older.proxy_step = event.proxy_step;
      break;
    case GPUSONDE_NCCL_KERNEL_CH:
      older.kernel_channel = event.kernel_ch.channel;
      break;
    default:
      break;
  }
  void* handle = nullptr;
  v3_->start(context, &handle, &older);
  return handle;
}

void Profiler::Stop(void* handle) {
  if (handle == nullptr) return;
  if (version_ == 3) v3_->stop(handle);
  if (version_ == 4) v4_->stop(handle);
  if (version_ >= 5) v5_->stop(handle);
}

void Profiler::RecordState(void* handle, int state, gpusonde_nccl_state_v4* arguments) {
  if (handle == nullptr) return;
  if (version_ == 3 && state <= GPUSONDE_NCCL_STATE_PROXY_CTRL_LAST) {
    gpusonde_nccl_state_v3 older{};
    v3_->record_state(handle, state, &older);
  }
  if (version_ == 4 && state <= GPUSONDE_NCCL_STATE_KERNEL_CH_STOP)
    v4_->record_state(handle, state, arguments);
  if (version_ >= 5) v5_->record_state(handle, state, arguments);
}

}  // namespace simgpu::nccl
