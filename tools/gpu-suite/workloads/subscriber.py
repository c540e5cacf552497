# SPDX-License-Identifier: Apache-2.0
"""subscriber.py LIBCUPTI: subscribes to CUPTI before CUDA starts, like another tool, launches work for three seconds,
and prints the result of a second subscription: {"second": result, "holder": text or null}."""

import ctypes
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples/train"))
import cuda  # noqa: E402
import replay  # noqa: E402

HOLDER_BYTES = 64  # the minimum by cupti_callbacks.h
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)


class Parameters(ctypes.Structure):  # CUpti_SubscriberParams
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("old_name", ctypes.c_char_p),
                ("old_size", ctypes.c_size_t)]


@CALLBACK
def nothing(_user, _domain, _identifier, _data):
    pass


def subscribe(cupti, name, old=None):
    """(result, subscriber). By name where this CUPTI can (12.9 and newer)."""
    handle = ctypes.c_void_p()
    if not hasattr(cupti, "cuptiSubscribe_v2"):
        return cupti.cuptiSubscribe(ctypes.byref(handle), nothing, None), handle
    parameters = Parameters(ctypes.sizeof(Parameters), name, ctypes.cast(old, ctypes.c_char_p) if old else None,
                            len(old) if old else 0)
    return cupti.cuptiSubscribe_v2(ctypes.byref(handle), nothing, None, ctypes.byref(parameters)), handle


def main():
    cupti = ctypes.CDLL(sys.argv[1])
    first, _ = subscribe(cupti, b"gpu-suite")
    if first != 0:
        sys.exit(f"cuptiSubscribe: {first}")
    old = ctypes.create_string_buffer(HOLDER_BYTES)
    second, _ = subscribe(cupti, b"another", old)
    gpu = cuda.Cuda()
    stream = gpu.stream()
    module = ".version 7.0\n.target sm_70\n.address_size 64\n" + replay.KERNEL.format(name="work")
    function = gpu.functions(module, ["work"])["work"]
    duration = ctypes.c_uint64(5000)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
    until = time.monotonic() + 3
    while time.monotonic() < until:
        for _ in range(100):
            gpu.check(gpu.launch(function, 8, 1, 1, 256, 1, 1, 0, stream, parameters, None))
        gpu.synchronize()
    print(json.dumps({"second": second, "holder": old.value.decode() or None}))


if __name__ == "__main__":
    main()
