// SPDX-License-Identifier: Apache-2.0
#include "inject_cupti.h"

#include <atomic>
#include <cstring>

namespace {
std::atomic<gpusonde_cupti_callback*> the_callback = nullptr;
std::atomic<void*> the_user = nullptr;
gpusonde_cupti_buffer_requested* the_requested = nullptr;
gpusonde_cupti_buffer_completed* the_completed = nullptr;
}  // namespace

extern "C" {

gpusonde_cupti_callback* BenchCallback() { return the_callback; }
void* BenchUser() { return the_user; }

gpusonde_cupti_get_version_fn cuptiGetVersion;
gpusonde_cupti_subscribe_fn cuptiSubscribe;
gpusonde_cupti_unsubscribe_fn cuptiUnsubscribe;
gpusonde_cupti_enable_callback_fn cuptiEnableCallback;
gpusonde_cupti_activity_kind_fn cuptiActivityEnable;
gpusonde_cupti_activity_kind_fn cuptiActivityDisable;
gpusonde_cupti_activity_register_callbacks_fn cuptiActivityRegisterCallbacks;
gpusonde_cupti_activity_register_timestamp_callback_fn cuptiActivityRegisterTimestampCallback;
gpusonde_cupti_activity_flush_all_fn cuptiActivityFlushAll;
gpusonde_cupti_activity_get_next_record_fn cuptiActivityGetNextRecord;
gpusonde_cupti_activity_get_num_dropped_records_fn cuptiActivityGetNumDroppedRecords;
gpusonde_cupti_get_device_id_fn cuptiGetDeviceId;
gpusonde_cupti_get_context_id_fn cuptiGetContextId;
gpusonde_cupti_get_graph_id_fn cuptiGetGraphId;
gpusonde_cupti_get_graph_node_id_fn cuptiGetGraphNodeId;

int32_t cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  return 0;
}
int32_t cuptiSubscribe(gpusonde_cupti_subscriber_handle* subscriber, gpusonde_cupti_callback* callback,
                       void* user) {
  *subscriber = reinterpret_cast<gpusonde_cupti_subscriber_handle>(&the_callback);
  the_user = user;
  the_callback = callback;
  return 0;
}
int32_t cuptiUnsubscribe(gpusonde_cupti_subscriber_handle) {
  the_callback = nullptr;
  return 0;
}
int32_t cuptiEnableCallback(uint32_t, gpusonde_cupti_subscriber_handle, uint32_t, uint32_t) { return 0; }
int32_t cuptiActivityEnable(uint32_t) { return 0; }
int32_t cuptiActivityDisable(uint32_t) { return 0; }
int32_t cuptiActivityRegisterCallbacks(gpusonde_cupti_buffer_requested* requested,
                                       gpusonde_cupti_buffer_completed* completed) {
  the_requested = requested;
  the_completed = completed;
  return 0;
}
int32_t cuptiActivityRegisterTimestampCallback(gpusonde_cupti_timestamp*) { return 0; }
// One record per flush; otherwise the library assumes that another tool gets them, and unsubscribes.
int32_t cuptiActivityFlushAll(uint32_t) {
  uint8_t* buffer = nullptr;
  size_t bytes = 0;
  size_t most = 0;
  the_requested(&buffer, &bytes, &most);
  if (buffer == nullptr) return 0;
  gpusonde_cupti_overhead record{};
  record.kind = GPUSONDE_CUPTI_KIND_OVERHEAD;
  std::memcpy(buffer, &record, sizeof record);
  the_completed(nullptr, 0, buffer, bytes, sizeof record);
  return 0;
}
int32_t cuptiActivityGetNextRecord(uint8_t* buffer, size_t, void** record) {
  if (*record != nullptr) return GPUSONDE_CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = buffer;
  return 0;
}
int32_t cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  *dropped = 0;
  return 0;
}
int32_t cuptiGetDeviceId(void*, uint32_t*) { return 0; }
int32_t cuptiGetContextId(void*, uint32_t*) { return 0; }
int32_t cuptiGetGraphId(void*, uint32_t*) { return 0; }
int32_t cuptiGetGraphNodeId(void*, uint64_t*) { return 0; }
}
