// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// A few calls of a make-believe CUDA with a make-believe CUPTI around them, enough to drive the inject
// library through what a test wants to see. The real thing's stand-in is simgpu.
extern "C" {

// A kernel launch through the runtime, with the driver's call nested in it. Its record has this duration.
void FakeLaunch(const char* name, uint32_t device, uint64_t duration_ns);
void FakeCopy(uint8_t kind, uint64_t bytes, uint64_t duration_ns);
void FakeSet(uint64_t bytes, uint64_t duration_ns);
void FakeSync(uint64_t duration_ns);
// A graph with `nodes` kernels is captured, instantiated and launched `launches` times.
void FakeGraph(const char* name, uint32_t nodes, uint32_t launches, uint64_t duration_ns);
// The next correlation id.
void FakeSetCorrelation(uint32_t correlation);
// The next record's times are zero.
void FakeDropTimes();
// CUPTI has lost this many records.
void FakeDropRecords(uint64_t count);
// Another tool subscribes before ours, under this name; or takes the buffer callbacks from it.
void FakeForeignSubscriber(const char* name);
void FakeForeignBuffers();
// Every call of CUPTI from now on fails with this error (0: none does).
void FakeFail(int32_t result);
// How many subscribers, enabled kinds and enabled callbacks CUPTI has.
uint32_t FakeSubscribers();
uint32_t FakeEnabledKinds();
uint32_t FakeEnabledCallbacks();
}
