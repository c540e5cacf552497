// SPDX-License-Identifier: Apache-2.0
// Versions, ids, clock, attributes.
#include <cstring>
#include <map>
#include <vector>

#include "simgpu/cupti/cupti.h"

namespace simgpu::cupti {
namespace {

// CUPTI 12.6's and 13.0's own numbers.
constexpr uint32_t kVersion = kIs13 ? 130'001 : 24;

// Gets the id of an object from the driver.
template <class Id, class Lookup>
Result IdFor(const char* function, Id* id, Lookup lookup) {
  const Result fault = EnterCupti(function);
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (Tools() == nullptr) return GPUSONDE_CUPTI_ERROR_NOT_INITIALIZED;
  if (id == nullptr || !lookup(*Tools())) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  return GPUSONDE_CUPTI_SUCCESS;
}

// Attributes are stored and returned, without effect.
std::mutex attributes_mutex;
std::map<uint32_t, std::vector<uint8_t>>& Attributes() {
  static auto& attributes = *new std::map<uint32_t, std::vector<uint8_t>>;
  return attributes;
}

}  // namespace
}  // namespace simgpu::cupti

using namespace simgpu::cupti;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuptiGetVersion(uint32_t* version) {
  const Result fault = EnterCupti("cuptiGetVersion");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (version == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  *version = kVersion;
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiGetResultString(Result result, const char** text) {
  if (text == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  switch (result) {
    case GPUSONDE_CUPTI_SUCCESS:
      *text = "CUPTI_SUCCESS";
      break;
    case GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER:
      *text = "CUPTI_ERROR_INVALID_PARAMETER";
      break;
    case GPUSONDE_CUPTI_ERROR_INVALID_OPERATION:
      *text = "CUPTI_ERROR_INVALID_OPERATION";
      break;
    case GPUSONDE_CUPTI_ERROR_OUT_OF_MEMORY:
      *text = "CUPTI_ERROR_OUT_OF_MEMORY";
      break;
    case GPUSONDE_CUPTI_ERROR_MAX_LIMIT_REACHED:
      *text = "CUPTI_ERROR_MAX_LIMIT_REACHED";
      break;
    case GPUSONDE_CUPTI_ERROR_NOT_INITIALIZED:
      *text = "CUPTI_ERROR_NOT_INITIALIZED";
      break;
    case GPUSONDE_CUPTI_ERROR_INVALID_KIND:
      *text = "CUPTI_ERROR_INVALID_KIND";
      break;
    case GPUSONDE_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
      break;
    case GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
      break;
    default:
      *text = "CUPTI_ERROR_UNKNOWN";
      break;
  }
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiGetTimestamp(uint64_t* timestamp) {
  const Result fault = EnterCupti("cuptiGetTimestamp");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (timestamp == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  *timestamp = Timestamp();
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiActivityRegisterTimestampCallback(gpusonde_cupti_timestamp* clock) {
  const Result fault = EnterCupti("cuptiActivityRegisterTimestampCallback");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (clock == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  SetClock(clock);
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiGetContextId(void* context, uint32_t* id) {
  return IdFor("cuptiGetContextId", id, [&](const auto& tools) { return tools.context_id(context, id); });
}

SIMGPU_EXPORT Result cuptiGetDeviceId(void* context, uint32_t* id) {
  return IdFor("cuptiGetDeviceId", id, [&](const auto& tools) { return tools.device_of(context, id); });
}

SIMGPU_EXPORT Result cuptiGetStreamId(void* context, void* stream, uint32_t* id) {
  return IdFor("cuptiGetStreamId", id,
               [&](const auto& tools) { return tools.stream_id(context, stream, id); });
}

SIMGPU_EXPORT Result cuptiGetStreamIdEx(void* context, void* stream, uint8_t /*per_thread*/, uint32_t* id) {
  return IdFor("cuptiGetStreamIdEx", id,
               [&](const auto& tools) { return tools.stream_id(context, stream, id); });
}

SIMGPU_EXPORT Result cuptiGetGraphId(void* graph, uint32_t* id) {
  return IdFor("cuptiGetGraphId", id, [&](const auto& tools) { return tools.graph_id(graph, id); });
}

SIMGPU_EXPORT Result cuptiGetGraphExecId(void* exec, uint32_t* id) {
  return IdFor("cuptiGetGraphExecId", id, [&](const auto& tools) { return tools.graph_exec_id(exec, id); });
}

SIMGPU_EXPORT Result cuptiGetGraphNodeId(void* node, uint64_t* id) {
  return IdFor("cuptiGetGraphNodeId", id, [&](const auto& tools) { return tools.node_id(node, id); });
}

SIMGPU_EXPORT Result cuptiActivitySetAttribute(uint32_t attribute, size_t* bytes, void* value) {
  const Result fault = EnterCupti("cuptiActivitySetAttribute");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (bytes == nullptr || value == nullptr || *bytes == 0 || *bytes > sizeof(size_t))
    return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard lock(attributes_mutex);
  const auto* first = static_cast<const uint8_t*>(value);
  Attributes()[attribute].assign(first, first + *bytes);
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiActivityGetAttribute(uint32_t attribute, size_t* bytes, void* value) {
  const Result fault = EnterCupti("cuptiActivityGetAttribute");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (bytes == nullptr || value == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard lock(attributes_mutex);
  const auto found = Attributes().find(attribute);
  if (found == Attributes().end()) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  if (*bytes < found->second.size()) return GPUSONDE_CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  *bytes = found->second.size();
  std::memcpy(value, found->second.data(), *bytes);
  return GPUSONDE_CUPTI_SUCCESS;
}
