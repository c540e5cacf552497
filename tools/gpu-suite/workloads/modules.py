# SPDX-License-Identifier: Apache-2.0
"""modules.py COUNT: loads COUNT modules one after the other, each with a kernel of its own name; launches it and unloads
the module at once."""

import ctypes
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples/train"))
import cuda  # noqa: E402
import replay  # noqa: E402


def main():
    gpu = cuda.Cuda()
    stream = gpu.stream()
    duration = ctypes.c_uint64(5000)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
    for index in range(int(sys.argv[1])):
        name = f"short_lived_{index}"
        image = ".version 7.0\n.target sm_70\n.address_size 64\n" + replay.KERNEL.format(name=name)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        gpu.check(gpu.driver.cuModuleLoadData(ctypes.byref(module), image.encode()))
        gpu.check(gpu.driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        gpu.check(gpu.launch(function, 8, 1, 1, 256, 1, 1, 0, stream, parameters, None))
        gpu.synchronize()
        gpu.check(gpu.driver.cuModuleUnload(module))
    print("done")


if __name__ == "__main__":
    main()
