// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/capability.h"

// The probes, each in the file of its name; those of pods in pods.cpp.
namespace gpusonde::doctor {

Finding ProbeBpf(const Settings& settings);
Finding ProbeBtf(const Settings& settings);
Finding ProbeContainerRuntime(const Settings& settings);
Finding ProbeCpuSampling(const Settings& settings);
Finding ProbeCuda(const Settings& settings);
Finding ProbeCupti(const Settings& settings);
Finding ProbeDuckdb(const Settings& settings);
Finding ProbeGpuProcesses(const Settings& settings);
Finding ProbeHostSignals(const Settings& settings);
Finding ProbeInject(const Settings& settings);
Finding ProbeKallsyms(const Settings& settings);
Finding ProbeKubeletPodResources(const Settings& settings);
Finding ProbeMemlock(const Settings& settings);
Finding ProbeMemory(const Settings& settings);
Finding ProbeMpi(const Settings& settings);
Finding ProbeNvml(const Settings& settings);
Finding ProbePerfEvent(const Settings& settings);
Finding ProbePrivileges(const Settings& settings);
Finding ProbeRecordingSandbox(const Settings& settings);
Finding ProbeRingBuffer(const Settings& settings);
Finding ProbeSideband(const Settings& settings);
Finding ProbeStateFolder(const Settings& settings);
Finding ProbeTracepoints(const Settings& settings);
Finding ProbeUi(const Settings& settings);
Finding ProbeUprobes(const Settings& settings);

}  // namespace gpusonde::doctor
