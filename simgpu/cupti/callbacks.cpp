// SPDX-License-Identifier: Apache-2.0
// Subscribers and their callbacks.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "simgpu/cupti/cupti.h"

// The handle that clients hold.
struct gpusonde_cupti_subscriber {
  std::atomic<gpusonde_cupti_callback*> callback = nullptr;
  std::atomic<void*> user = nullptr;
  char name[GPUSONDE_CUPTI_OLD_SUBSCRIBER_NAME_BYTES] = "";
  simgpu::cupti::WantedCallbacks wanted;
};

namespace simgpu::cupti {
namespace {

// A single instance that is never freed: a thread may be in its callback while another unsubscribes.
std::mutex the_mutex;
std::atomic<bool> subscribed = false;
gpusonde_cupti_subscriber& TheSubscriber() {
  static gpusonde_cupti_subscriber& subscriber = *new gpusonde_cupti_subscriber;
  return subscriber;
}

template <size_t kBits>
bool SetBit(std::bitset<kBits>& bits, uint32_t index, bool enable) {
  if (index >= kBits) return false;
  bits[index] = enable;
  return true;
}

// Enables or disables one callback of a domain, or all with `every`. False: no such domain or callback.
bool SetWanted(uint32_t domain, uint32_t callback_id, bool every, bool enable) {
  WantedCallbacks& wanted = TheSubscriber().wanted;
  const auto set = [&](auto& bits) {
    if (!every) return SetBit(bits, callback_id, enable);
    enable ? bits.set() : bits.reset();
    return true;
  };
  switch (domain) {
    case GPUSONDE_CUPTI_DOMAIN_DRIVER:
      return set(wanted.driver);
    case GPUSONDE_CUPTI_DOMAIN_RUNTIME:
      return set(wanted.runtime);
    case GPUSONDE_CUPTI_DOMAIN_RESOURCE:
      return set(wanted.resource);
    case GPUSONDE_CUPTI_DOMAIN_SYNCHRONIZE:
      return set(wanted.synchronize);
    case GPUSONDE_CUPTI_DOMAIN_NVTX:
      return set(wanted.nvtx);
    case GPUSONDE_CUPTI_DOMAIN_STATE:
      return set(wanted.state);
    default:
      return false;
  }
}

thread_local bool in_resource_callback = false;

void Call(uint32_t domain, uint32_t callback_id, const void* data) {
  gpusonde_cupti_callback* callback = TheSubscriber().callback;
  if (callback == nullptr) return;
  Spin(TheKnobs().callback_ns);
  in_resource_callback = domain == GPUSONDE_CUPTI_DOMAIN_RESOURCE;
  callback(TheSubscriber().user, domain, callback_id, data);
  in_resource_callback = false;
}

Result Subscribe(gpusonde_cupti_subscriber_handle* handle, gpusonde_cupti_callback* callback, void* user,
                 const gpusonde_cupti_subscriber_params* params) {
  if (handle == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  if (Tools() == nullptr) return GPUSONDE_CUPTI_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(the_mutex);
  gpusonde_cupti_subscriber& subscriber = TheSubscriber();
  if (subscribed) {
    if (params != nullptr && params->old_subscriber_name != nullptr)
      std::snprintf(params->old_subscriber_name, params->old_subscriber_size, "%s", subscriber.name);
    return GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  subscribed = true;
  if (!KeepAttached()) {
    subscribed = false;
    return GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  subscriber.wanted = {};
  const char* name = params != nullptr && params->subscriber_name != nullptr ? params->subscriber_name : "";
  std::snprintf(subscriber.name, sizeof subscriber.name, *name == '\0' ? "CUPTI%s" : "CUPTI for %s", name);
  subscriber.user = user;
  subscriber.callback = callback;
  *handle = &subscriber;
  return GPUSONDE_CUPTI_SUCCESS;
}

bool Holds(gpusonde_cupti_subscriber_handle handle) { return subscribed && handle == &TheSubscriber(); }

}  // namespace

bool AnySubscriber() { return subscribed; }

bool InResourceCallback() { return in_resource_callback; }

void DropSubscriber() {
  const std::lock_guard lock(the_mutex);
  TheSubscriber().callback = nullptr;
  TheSubscriber().wanted = {};
  subscribed = false;
  KeepAttached();
}

void OnApi(ApiEvent& event) {
  const WantedCallbacks& wanted = TheSubscriber().wanted;
  const bool runtime = event.domain == GPUSONDE_CUPTI_DOMAIN_RUNTIME;
  const bool exit = event.site == GPUSONDE_CUPTI_API_EXIT;
  if (exit) OnApiExit(event, *event.result);
  if (event.callback_id >= wanted.driver.size() ||
      !(runtime ? wanted.runtime : wanted.driver)[event.callback_id])
    return;
  const gpusonde_cupti_callback_data data = {
      .site = event.site,
      .function_name = event.function,
      .function_params = event.params,
      .function_return_value = exit ? event.result : nullptr,
      .symbol_name = event.symbol,
      .context = event.context,
      .context_uid = event.context_id,
      .correlation_data = event.correlation_data,
      .correlation_id = event.correlation_id,
  };
  Call(event.domain, event.callback_id, &data);
}

void OnResource(const ResourceEvent& event) {
  if (event.id >= TheSubscriber().wanted.resource.size() || !TheSubscriber().wanted.resource[event.id])
    return;
  const gpusonde_cupti_graph_data graph = {
      .graph = event.graph,
      .original_graph = event.original_graph,
      .node = event.node,
      .original_node = event.original_node,
      .node_type = event.node_type,
      .dependency = event.dependency,
      .graph_exec = event.graph_exec,
  };
  // CUpti_ModuleResourceData
  const struct {
    uint32_t module_id;
    size_t image_bytes;
    const void* image;
  } module{event.module_id, event.image_bytes, event.image};
  gpusonde_cupti_resource_data data = {
      .context = event.context, .stream = event.stream, .descriptor = nullptr};
  if (event.graph != nullptr || event.graph_exec != nullptr)
    data.descriptor = const_cast<gpusonde_cupti_graph_data*>(&graph);
  else if (event.module_id != 0)
    data.descriptor = const_cast<void*>(static_cast<const void*>(&module));
  Call(GPUSONDE_CUPTI_DOMAIN_RESOURCE, event.id, &data);
}

void OnSynchronized(void* context, void* stream) {
  // CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED, _CONTEXT_SYNCHRONIZED
  const uint32_t id = stream != nullptr ? 1 : 2;
  if (!TheSubscriber().wanted.synchronize[id]) return;
  const struct {
    void* context;
    void* stream;
  } data{context, stream};
  Call(GPUSONDE_CUPTI_DOMAIN_SYNCHRONIZE, id, &data);
}

}  // namespace simgpu::cupti

using namespace simgpu::cupti;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuptiSubscribe(gpusonde_cupti_subscriber_handle* handle,
                                    gpusonde_cupti_callback* callback, void* user) {
  const Result fault = EnterCupti("cuptiSubscribe");
  return fault != GPUSONDE_CUPTI_SUCCESS ? fault : Subscribe(handle, callback, user, nullptr);
}

SIMGPU_EXPORT Result cuptiSubscribe_v2(gpusonde_cupti_subscriber_handle* handle,
                                       gpusonde_cupti_callback* callback, void* user,
                                       gpusonde_cupti_subscriber_params* params) {
  const Result fault = EnterCupti("cuptiSubscribe_v2");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (params != nullptr && params->struct_size != sizeof *params)
    return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  return Subscribe(handle, callback, user, params);
}

SIMGPU_EXPORT Result cuptiUnsubscribe(gpusonde_cupti_subscriber_handle handle) {
  const Result fault = EnterCupti("cuptiUnsubscribe");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (!Holds(handle)) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  DropSubscriber();
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiEnableCallback(uint32_t enable, gpusonde_cupti_subscriber_handle handle,
                                         uint32_t domain, uint32_t callback_id) {
  const Result fault = EnterCupti("cuptiEnableCallback");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (!Holds(handle) || callback_id == 0 || !SetWanted(domain, callback_id, false, enable != 0))
    return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiEnableDomain(uint32_t enable, gpusonde_cupti_subscriber_handle handle,
                                       uint32_t domain) {
  const Result fault = EnterCupti("cuptiEnableDomain");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (!Holds(handle) || !SetWanted(domain, 0, true, enable != 0))
    return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiEnableAllDomains(uint32_t enable, gpusonde_cupti_subscriber_handle handle) {
  const Result fault = EnterCupti("cuptiEnableAllDomains");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (!Holds(handle)) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  for (uint32_t domain = GPUSONDE_CUPTI_DOMAIN_DRIVER; domain <= GPUSONDE_CUPTI_DOMAIN_STATE; ++domain)
    SetWanted(domain, 0, true, enable != 0);
  return GPUSONDE_CUPTI_SUCCESS;
}
