# SPDX-License-Identifier: Apache-2.0
"""The GPU of the example: each step gives it the work of a step of a real program."""

import ctypes

import cuda
from nvtx import annotate

MIN_MEMORY = 16 << 20


class Device:
    """The first CUDA device, with a kernel stream to replay on it. Raises CudaError if there is none."""

    def __init__(self, stream):
        self.cuda = cuda.Cuda()
        self.name = self.cuda.device_name()
        self.streams = [self.cuda.stream() for _ in range(stream.streams)]
        functions = self.cuda.functions(stream.ptx(), stream.names)
        size = max(MIN_MEMORY, stream.largest_copy)
        self.memory, self.more_memory = self.cuda.device_memory(size), self.cuda.device_memory(size)
        self.pinned = self.cuda.pinned_memory(size)
        self.durations = {}  # kept: the calls hold their addresses
        self.steps = [self.group([(phase, [self.call(functions, operation) for operation in operations])
                                  for phase, operations in step]) for step in stream.steps]
        self.graphs = {}
        self.step_index = -1

    @staticmethod
    def group(step):
        """{phase: calls}: a phase may occur more than once in a step."""
        phases = {}
        for phase, calls in step:
            phases.setdefault(phase, []).extend(calls)
        return phases

    def call(self, functions, operation):
        """(function, arguments) that launch one operation of a stream."""
        kind, stream = operation[0], self.streams[operation[1]]
        if kind == "k":
            _, _, name, shape, shared, duration_ns = operation
            argument = self.durations.setdefault(duration_ns, ctypes.c_uint64(duration_ns))
            parameters = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
            # Recorded kernels may use more shared memory than this device allows by default.
            return self.cuda.launch, (functions[name], *shape, min(shared, 48 << 10), stream, parameters, None)
        if kind == "c":
            target, source, direction = {
                "htod": (self.memory, self.pinned, cuda.HOST_TO_DEVICE),
                "dtoh": (self.pinned, self.memory, cuda.DEVICE_TO_HOST),
                "dtod": (self.memory, self.more_memory, cuda.DEVICE_TO_DEVICE)}[operation[2]]
            return self.cuda.copy, (target, source, operation[3], direction, stream)
        return self.cuda.fill, (self.memory, 0, operation[2], stream)

    def begin_step(self):
        self.step_index = (self.step_index + 1) % len(self.steps)

    def run(self, phase):
        """Queues this step's work in `phase`."""
        with annotate(phase):
            for function, arguments in self.steps[self.step_index].get(phase, ()):
                code = function(*arguments)
                if code != 0:
                    self.cuda.check(code)

    def run_as_graph(self, phase):
        """The same through a CUDA graph, captured at first use."""
        calls = self.steps[self.step_index].get(phase)
        if not calls:
            return
        with annotate(phase):
            graph = self.graphs.get((self.step_index, phase))
            if graph is None:
                graph = self.capture(calls)
                self.graphs[self.step_index, phase] = graph
            self.cuda.launch_graph(graph, self.streams[0])

    def capture(self, calls):
        stream = self.streams[0]

        def work():
            for function, arguments in calls:
                # On one stream, whatever the recorded ones: work on others would not be captured.
                position = 8 if function is self.cuda.launch else len(arguments) - 1
                self.cuda.check(function(*arguments[:position], stream, *arguments[position + 1:]))

        return self.cuda.capture(stream, work)

    def upload(self, features):
        """Copies a batch's features to the device."""
        flat = [value for row in features for value in row]
        packed = (ctypes.c_float * len(flat))(*flat)
        ctypes.memmove(self.pinned, packed, ctypes.sizeof(packed))
        with annotate("upload"):
            self.cuda.check(self.cuda.copy(self.memory, self.pinned, ctypes.sizeof(packed), cuda.HOST_TO_DEVICE,
                                           self.streams[0]))

    def synchronize(self):
        self.cuda.synchronize()
