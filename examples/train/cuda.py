# SPDX-License-Identifier: Apache-2.0
"""The part of CUDA that the example needs, through ctypes: the runtime for memory, streams and graphs, the driver for
kernels loaded as PTX. Only Python's standard library."""

import ctypes
import ctypes.util
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
NON_BLOCKING = 1
RELAXED = 2  # cudaStreamCaptureModeRelaxed


class CudaError(Exception):
    pass


def open_library(names):
    """The first of these shared libraries that can be loaded, or None."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def open_runtime():
    runtime = open_library(["libcudart.so.13", "libcudart.so.12"])
    if runtime is not None:
        return runtime
    # PyTorch's wheels contain the runtime, outside the linker's path.
    for folder in sys.path:
        for version in ("13", "12"):
            for part in ("cu13/lib", "cuda_runtime/lib"):
                runtime = open_library([f"{folder}/nvidia/{part}/libcudart.so.{version}"])
                if runtime is not None:
                    return runtime
    return None


class Cuda:
    """The first device. Raises CudaError, with advice, if there is none."""

    def __init__(self):
        self.driver = open_library(["libcuda.so.1"])
        self.runtime = open_runtime()
        missing = [name for name, library in (("libcuda.so.1", self.driver), ("libcudart.so", self.runtime))
                   if library is None]
        if missing:
            raise CudaError(f"{' and '.join(missing)} can't be loaded. Without a GPU, use the simulated one: "
                            "build/release/bin/simgpu run -- " + " ".join(sys.argv))
        self.runtime.cudaGetErrorString.restype = c_char_p
        count = c_int()
        code = self.runtime.cudaGetDeviceCount(byref(count))
        if code != 0 or count.value == 0:
            raise CudaError("CUDA finds no device: " + self.runtime.cudaGetErrorString(code).decode())
        self.check(self.runtime.cudaSetDevice(0))
        # Declared once: without types, ctypes would pass pointers as 32-bit integers, and cost more.
        self.launch = self.driver.cuLaunchKernel
        self.launch.argtypes = [c_void_p] + 7 * [c_uint] + 3 * [c_void_p]
        self.copy = self.runtime.cudaMemcpyAsync
        self.copy.argtypes = [c_void_p, c_void_p, c_size_t, c_int, c_void_p]
        self.fill = self.runtime.cudaMemsetAsync
        self.fill.argtypes = [c_void_p, c_int, c_size_t, c_void_p]

    def check(self, code):
        if code != 0:
            raise CudaError(f"CUDA error {code}: {self.runtime.cudaGetErrorString(code).decode()}")

    def device_name(self):
        name = ctypes.create_string_buffer(128)
        self.check(self.driver.cuDeviceGetName(name, len(name), 0))
        return name.value.decode()

    def device_memory(self, size):
        pointer = c_void_p()
        self.check(self.runtime.cudaMalloc(byref(pointer), c_size_t(size)))
        return pointer

    def pinned_memory(self, size):
        pointer = c_void_p()
        self.check(self.runtime.cudaMallocHost(byref(pointer), c_size_t(size)))
        return pointer

    def stream(self):
        stream = c_void_p()
        self.check(self.runtime.cudaStreamCreateWithFlags(byref(stream), NON_BLOCKING))
        return stream

    def functions(self, ptx, names):
        """A module's kernels with these names."""
        module, functions = c_void_p(), {}
        self.check(self.driver.cuModuleLoadData(byref(module), ptx.encode()))
        for name in names:
            functions[name] = c_void_p()
            self.check(self.driver.cuModuleGetFunction(byref(functions[name]), module, name.encode()))
        return functions

    def capture(self, stream, work):
        """An executable graph of the work that work() launches on `stream`."""
        graph, executable = c_void_p(), c_void_p()
        self.check(self.runtime.cudaStreamBeginCapture(stream, RELAXED))
        work()
        self.check(self.runtime.cudaStreamEndCapture(stream, byref(graph)))
        self.check(self.runtime.cudaGraphInstantiate(byref(executable), graph, c_uint64(0)))
        return executable

    def launch_graph(self, executable, stream):
        self.check(self.runtime.cudaGraphLaunch(executable, stream))

    def synchronize(self):
        self.check(self.runtime.cudaDeviceSynchronize())
