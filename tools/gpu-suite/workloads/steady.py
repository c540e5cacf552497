# SPDX-License-Identifier: Apache-2.0
"""steady.py SECONDS: steps of 200 kernels of 5 µs and a wait each; prints {"steps": [[start s, duration ms]…]}."""

import ctypes
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples/train"))
import cuda  # noqa: E402
import replay  # noqa: E402


def main():
    gpu = cuda.Cuda()
    stream = gpu.stream()
    module = ".version 7.0\n.target sm_70\n.address_size 64\n" + replay.KERNEL.format(name="work")
    function = gpu.functions(module, ["work"])["work"]
    duration = ctypes.c_uint64(5000)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
    steps = []
    ends = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < ends:
        start = time.monotonic()
        for _ in range(200):
            gpu.check(gpu.launch(function, 8, 1, 1, 256, 1, 1, 0, stream, parameters, None))
        gpu.synchronize()
        steps.append((round(start, 6), round(1000 * (time.monotonic() - start), 4)))
        time.sleep(0.005)
    print(json.dumps({"steps": steps}))


if __name__ == "__main__":
    main()
