// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cudart/runtime.h"

#include <mutex>

#include "wire/nvidia/cupti.h"

namespace simgpu::cudart {
namespace {

thread_local Error last_error = GPUSONDE_CU_SUCCESS;

const ToolsTable* Tools() {
  static const ToolsTable* tools = [] {
    const void* table = nullptr;
    return cuGetExportTable(&table, kToolsTableId) == GPUSONDE_CU_SUCCESS
               ? static_cast<const ToolsTable*>(table)
               : nullptr;
  }();
  return tools;
}

}  // namespace

Error Note(Error error) {
  // NOT_READY is not a failure.
  if (error != GPUSONDE_CU_SUCCESS && error != GPUSONDE_CU_ERROR_NOT_READY) last_error = error;
  return error;
}

Error TakeLastError(bool forget) {
  const Error error = last_error;
  if (forget) last_error = GPUSONDE_CU_SUCCESS;
  return error;
}

Error Start() {
  void* context = nullptr;
  if (cuCtxGetCurrent(&context) == GPUSONDE_CU_SUCCESS && context != nullptr) return GPUSONDE_CU_SUCCESS;
  Error error = cuInit(0);
  if (error != GPUSONDE_CU_SUCCESS) return error;
  error = cuDevicePrimaryCtxRetain(&context, 0);
  return error != GPUSONDE_CU_SUCCESS ? error : cuCtxSetCurrent(context);
}

RuntimeCall::RuntimeCall(uint32_t callback_id, const char* function, const void* params, const char* symbol) {
  if (Tools() == nullptr || !Tools()->attached()) return;
  entered_ = true;
  event_.domain = GPUSONDE_CUPTI_DOMAIN_RUNTIME;
  event_.callback_id = callback_id;
  event_.function = function;
  event_.params = params;
  event_.symbol = symbol;
  event_.correlation_data = &correlation_data_;
  Tools()->enter(&event_);
}

Error RuntimeCall::Return(Error error) {
  Note(error);
  if (entered_) Tools()->leave(&event_, error);
  return error;
}

}  // namespace simgpu::cudart

using namespace simgpu::cudart;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Error cudaGetLastError() { return TakeLastError(true); }

SIMGPU_EXPORT Error cudaPeekAtLastError() { return TakeLastError(false); }

SIMGPU_EXPORT const char* cudaGetErrorName(Error error) {
  const char* text = nullptr;
  cuGetErrorName(error, &text);
  return text == nullptr ? "unrecognized error code" : text;
}

SIMGPU_EXPORT const char* cudaGetErrorString(Error error) {
  const char* text = nullptr;
  cuGetErrorString(error, &text);
  return text == nullptr ? "unrecognized error code" : text;
}

SIMGPU_EXPORT Error cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Note(GPUSONDE_CU_ERROR_INVALID_VALUE);
  *version = SIMGPU_CUDART_MAJOR * 1000;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Error cudaDriverGetVersion(int* version) { return Note(cuDriverGetVersion(version)); }
