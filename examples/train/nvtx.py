# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges like in any program: if NVTX_INJECTION64_PATH names a tool, it is loaded at the first range and receives all
of them; otherwise they cost almost nothing.

Implements NVTX 3's headers (nvtxDetail/nvtxInit.h of the CUDA toolkit) with ctypes: the tool gets a function that returns
tables of addresses, at which it stores its own functions.
"""

import contextlib
import ctypes
import os

EXPORT_TABLE_CALLBACKS = 1
MODULE_CORE, MODULE_CORE2 = 1, 5
RANGE_PUSH_A, RANGE_POP = 9, 11  # NvtxCallbackIdCore
ENTRIES = {MODULE_CORE: 16, MODULE_CORE2: 16}  # one more than the last id: id 0 is unused


class ExportTableCallbacks(ctypes.Structure):
    TABLE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p),
                                      ctypes.POINTER(ctypes.c_uint32))
    _fields_ = [("size", ctypes.c_size_t), ("get_module_function_table", TABLE_FUNCTION)]


class Tool:
    """The tool that NVTX_INJECTION64_PATH names."""

    def __init__(self, path):
        # slots[module][id] receives a function's address, tables[module] has the addresses of the slots.
        self.slots = {module: (ctypes.c_void_p * count)() for module, count in ENTRIES.items()}
        self.tables = {module: (ctypes.c_void_p * count)(*(ctypes.addressof(slots) + 8 * i for i in range(count)))
                       for (module, count), slots in zip(ENTRIES.items(), self.slots.values())}
        self.callbacks = ExportTableCallbacks(ctypes.sizeof(ExportTableCallbacks),
                                              ExportTableCallbacks.TABLE_FUNCTION(self.get_table))
        get_export_table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
        self.get_export_table = get_export_table(
            lambda table: ctypes.addressof(self.callbacks) if table == EXPORT_TABLE_CALLBACKS else None)
        self.library = ctypes.CDLL(path)
        self.library.InitializeInjectionNvtx2(self.get_export_table)
        self.push = self.function(RANGE_PUSH_A, ctypes.c_char_p)
        self.pop = self.function(RANGE_POP)

    def get_table(self, module, table, entries):
        if module not in self.tables:
            return 0
        table[0] = ctypes.addressof(self.tables[module])
        if entries:
            entries[0] = ENTRIES[module]
        return 1

    def function(self, index, *arguments):
        address = self.slots[MODULE_CORE][index]
        return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(address) if address else lambda *_: 0


def find_tool():
    path = os.environ.get("NVTX_INJECTION64_PATH")
    if not path:
        return None
    try:
        return Tool(path)
    except (OSError, AttributeError):
        return None  # programs run with or without the tool


TOOL = find_tool()


@contextlib.contextmanager
def annotate(text):
    """A range on this thread: `with annotate("forward"): …`"""
    if TOOL is None:
        yield
        return
    TOOL.push(text.encode())
    try:
        yield
    finally:
        TOOL.pop()
