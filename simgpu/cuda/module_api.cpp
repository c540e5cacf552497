// SPDX-License-Identifier: Apache-2.0
// Modules, libraries and the functions in them.
#include <cstdio>
#include <cstring>

#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/callback_ids.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

// Names outlive their modules, as with the real driver: CUPTI's records point to them. Needs the driver's
// mutex.
Function* AddFunction(Module& module, std::string_view name, const KernelTiming& timing) {
  const char* const text = TheDriver().names.emplace(name).first->c_str();
  return module.functions.emplace(name, std::make_unique<Function>(&module, text, timing))
      .first->second.get();
}

// PTX is text; cubins and fat binaries begin with a byte that text doesn't have.
bool IsPtx(const char* image) {
  return image[0] == '.' || image[0] == '/' || image[0] == '\n' || image[0] == ' ' || image[0] == '\r' ||
         image[0] == '\t';
}

Result Load(Module** made, const void* image) {
  if (made == nullptr || image == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  const auto* text = static_cast<const char*>(image);
  Driver& driver = TheDriver();
  auto module = std::make_unique<Module>();
  size_t image_bytes = 0;
  if (IsPtx(text)) {
    image_bytes = std::strlen(text) + 1;
    const auto kernels = KernelsOfPtx(std::string_view(text, image_bytes - 1));
    const std::lock_guard lock(driver.mutex);
    for (const auto& [name, timing] : kernels) AddFunction(*module, name, timing);
  } else {
    module->opaque = true;
  }
  {
    const std::lock_guard lock(driver.mutex);
    module->id = driver.next_module++;
    ++driver.modules;
  }
  *made = module.release();
  ResourceEvent event{};
  event.id = GPUSONDE_CUPTI_RESOURCE_MODULE_LOADED;
  event.context = CurrentContext();
  event.module_id = (*made)->id;
  event.image = image;
  event.image_bytes = image_bytes;
  NotifyResource(event);
  return GPUSONDE_CU_SUCCESS;
}

Result LoadFile(Module** made, const char* path) {
  if (path == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return GPUSONDE_CU_ERROR_FILE_NOT_FOUND;
  std::string image;
  char buffer[4096];
  for (size_t size = 0; (size = std::fread(buffer, 1, sizeof buffer, file)) > 0;) image.append(buffer, size);
  std::fclose(file);
  return image.empty() ? GPUSONDE_CU_ERROR_INVALID_IMAGE : Load(made, image.c_str());
}

Result Unload(Module* module) {
  if (module == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  Driver& driver = TheDriver();
  ResourceEvent event{};
  event.id = GPUSONDE_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING;
  event.context = CurrentContext();
  event.module_id = module->id;
  NotifyResource(event);
  int64_t tail_ns = 0;
  {
    const std::lock_guard lock(driver.mutex);
    for (const auto& context : driver.contexts) tail_ns = std::max(tail_ns, TailNs(*context));
    --driver.modules;
  }
  WaitUntil(tail_ns);
  delete module;
  return GPUSONDE_CU_SUCCESS;
}

Result Find(void** function, Module* module, const char* name) {
  if (module == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (function == nullptr || name == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  const std::lock_guard lock(TheDriver().mutex);
  const auto found = module->functions.find(std::string_view(name));
  if (found == module->functions.end() && !module->opaque) return GPUSONDE_CU_ERROR_NOT_FOUND;
  *function = found != module->functions.end() ? found->second.get() : AddFunction(*module, name, {});
  return GPUSONDE_CU_SUCCESS;
}

}  // namespace
}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuModuleLoadData(void** module, const void* image) {
  const struct {
    void** module;
    const void* image;
  } params{module, image};
  ApiCall call(kCall_cuModuleLoadData, "cuModuleLoadData", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result
                                                   : Load(reinterpret_cast<Module**>(module), image));
}

SIMGPU_EXPORT Result cuModuleLoadDataEx(void** module, const void* image, unsigned option_count,
                                        void* options, void** option_values) {
  const struct {
    void** module;
    const void* image;
    unsigned option_count;
    void* options;
    void** option_values;
  } params{module, image, option_count, options, option_values};
  ApiCall call(kCall_cuModuleLoadDataEx, "cuModuleLoadDataEx", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result
                                                   : Load(reinterpret_cast<Module**>(module), image));
}

SIMGPU_EXPORT Result cuModuleLoad(void** module, const char* path) {
  const struct {
    void** module;
    const char* path;
  } params{module, path};
  ApiCall call(kCall_cuModuleLoad, "cuModuleLoad", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result
                                                   : LoadFile(reinterpret_cast<Module**>(module), path));
}

SIMGPU_EXPORT Result cuModuleUnload(void* module) {
  const struct {
    void* module;
  } params{module};
  ApiCall call(kCall_cuModuleUnload, "cuModuleUnload", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : Unload(As<Module>(module)));
}

SIMGPU_EXPORT Result cuModuleGetFunction(void** function, void* module, const char* name) {
  const struct {
    void** function;
    void* module;
    const char* name;
  } params{function, module, name};
  ApiCall call(kCall_cuModuleGetFunction, "cuModuleGetFunction", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : Find(function, As<Module>(module), name));
}

// A library is a module without a context; a kernel is its function.
SIMGPU_EXPORT Result cuLibraryLoadData(void** library, const void* image, void* jit_options,
                                       void** jit_values, unsigned jit_count, void* options, void** values,
                                       unsigned count) {
  const struct {
    void** library;
    const void* image;
    void* jit_options;
    void** jit_values;
    unsigned jit_count;
    void* options;
    void** values;
    unsigned count;
  } params{library, image, jit_options, jit_values, jit_count, options, values, count};
  ApiCall call(kCall_cuLibraryLoadData, "cuLibraryLoadData", &params);
  const Result result = Ready();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result
                                                   : Load(reinterpret_cast<Module**>(library), image));
}

SIMGPU_EXPORT Result cuLibraryUnload(void* library) {
  const struct {
    void* library;
  } params{library};
  ApiCall call(kCall_cuLibraryUnload, "cuLibraryUnload", &params);
  const Result result = Ready();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : Unload(As<Module>(library)));
}

SIMGPU_EXPORT Result cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  const struct {
    void** kernel;
    void* library;
    const char* name;
  } params{kernel, library, name};
  ApiCall call(kCall_cuLibraryGetKernel, "cuLibraryGetKernel", &params);
  const Result result = Ready();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : Find(kernel, As<Module>(library), name));
}

SIMGPU_EXPORT Result cuKernelGetFunction(void** function, void* kernel) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (As<Function>(kernel) == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (function == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *function = kernel;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuFuncGetName(const char** name, void* function) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const Function* wanted = As<Function>(function);
  if (wanted == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (name == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *name = wanted->name;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuFuncGetModule(void** module, void* function) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const Function* wanted = As<Function>(function);
  if (wanted == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (module == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *module = wanted->module;
  return GPUSONDE_CU_SUCCESS;
}
