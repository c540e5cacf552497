#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of nvidia-smi that tools/gpu-suite uses, over any NVML: `--query-gpu=FIELD,… [-lms MS]`, as
CSV without header and units. NVIDIA's nvidia-smi does not run with the simulated GPU."""

import ctypes
import sys
import time

MILLIWATT = 1e-3
MEBIBYTE = 1 / (1 << 20)


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        if self.library.nvmlInit_v2() != 0 or self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            sys.exit("no device")

    def get(self, function, kind=ctypes.c_uint, *before):
        value = kind()
        code = getattr(self.library, function)(self.device, *before, ctypes.byref(value))
        if code != 0:
            return None
        return value.value if hasattr(value, "value") else value


FIELDS = {
    "utilization.gpu": lambda nvml: nvml.get("nvmlDeviceGetUtilizationRates", Utilization).gpu,
    "memory.used": lambda nvml: round(nvml.get("nvmlDeviceGetMemoryInfo", Memory).used * MEBIBYTE),
    "clocks.sm": lambda nvml: nvml.get("nvmlDeviceGetClockInfo", ctypes.c_uint, 1),
    "clocks.mem": lambda nvml: nvml.get("nvmlDeviceGetClockInfo", ctypes.c_uint, 2),
    "power.draw": lambda nvml: f"{nvml.get('nvmlDeviceGetPowerUsage') * MILLIWATT:.2f}",
    "power.limit": lambda nvml: f"{nvml.get('nvmlDeviceGetEnforcedPowerLimit') * MILLIWATT:.2f}",
    "temperature.gpu": lambda nvml: nvml.get("nvmlDeviceGetTemperature", ctypes.c_uint, 0),
    "pcie.link.gen.current": lambda nvml: nvml.get("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie.link.width.current": lambda nvml: nvml.get("nvmlDeviceGetCurrPcieLinkWidth"),
}


def main():
    query = next(word for word in sys.argv if word.startswith("--query-gpu="))
    every_s = int(sys.argv[sys.argv.index("-lms") + 1]) / 1000 if "-lms" in sys.argv else None
    fields = query.partition("=")[2].split(",")
    nvml = Nvml()
    while True:
        print(", ".join(str(FIELDS[field](nvml)) if field in FIELDS else "[N/A]" for field in fields), flush=True)
        if every_s is None:
            return
        time.sleep(every_s)


if __name__ == "__main__":
    main()
