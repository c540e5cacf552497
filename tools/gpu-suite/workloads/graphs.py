# SPDX-License-Identifier: Apache-2.0
"""graphs.py NODES LAUNCHES: captures NODES kernels named `node` in make_graph(), and launches the graph LAUNCHES times."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples/train"))
import cuda  # noqa: E402
import replay  # noqa: E402

DURATION_NS = 5000


def make_graph(gpu, function, stream, nodes):
    import ctypes
    duration = ctypes.c_uint64(DURATION_NS)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))

    def work():
        for _ in range(nodes):
            gpu.check(gpu.launch(function, 8, 1, 1, 256, 1, 1, 0, stream, parameters, None))

    return gpu.capture(stream, work)


def main():
    nodes, launches = int(sys.argv[1]), int(sys.argv[2])
    gpu = cuda.Cuda()
    stream = gpu.stream()
    time.sleep(2)  # the profiler may still be compiling the interpreter's unwind tables
    module = ".version 7.0\n.target sm_70\n.address_size 64\n" + replay.KERNEL.format(name="node")
    graph = make_graph(gpu, gpu.functions(module, ["node"])["node"], stream, nodes)
    for _ in range(launches):
        gpu.launch_graph(graph, stream)
    gpu.synchronize()
    time.sleep(1)  # names of functions are read while the program runs


if __name__ == "__main__":
    main()
