// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The known causes, sorted by name. A new cause is a file in causes/, which defines `const Cause& Name()`,
// and a line here.
#define GPUSONDE_CAUSES(X) \
  X(BlockIo)               \
  X(CpuContention)         \
  X(CpuContentionOwn)      \
  X(CpuQuota)              \
  X(FewerCpus)             \
  X(GpuClocks)             \
  X(GpuFault)              \
  X(GpuNeighbour)          \
  X(Hang)                  \
  X(HostSteal)             \
  X(InterruptPressure)     \
  X(IoThrottling)          \
  X(MemoryPressure)        \
  X(MoreCpuWork)           \
  X(NetworkContention)     \
  X(PacketLoss)            \
  X(PciePressure)          \
  X(SlowCpu)               \
  X(SlowDataLoading)       \
  X(Stopped)               \
  X(Straggler)

namespace gpusonde::diagnose {

enum class CauseId : uint8_t {
#define GPUSONDE_CAUSE(name) k##name,
  GPUSONDE_CAUSES(GPUSONDE_CAUSE)
#undef GPUSONDE_CAUSE
};

#define GPUSONDE_CAUSE(name) +1
inline constexpr size_t kCauses = 0 GPUSONDE_CAUSES(GPUSONDE_CAUSE);
#undef GPUSONDE_CAUSE

}  // namespace gpusonde::diagnose
