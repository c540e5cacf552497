// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per rank of a NCCL communicator.
struct Communicator {
  Id128 process;
  std::string communicator;
  int32_t rank = 0;
  std::optional<int32_t> ranks;
  std::optional<int32_t> nodes;
  std::string name;
  int64_t joined_ns = 0;
  std::optional<int64_t> left_ns;
  int64_t dropped = 0;
  int32_t plugin_version = 0;
};

inline constexpr Table kCommunicators(
    "communicators", Key{2}, "One row per rank of a NCCL communicator",
    Field("process", &Communicator::process, "", "the process of the rank"),
    Field("communicator", &Communicator::communicator, "", "NCCL's hash, hexadecimal; the same on all ranks"),
    Field("rank", &Communicator::rank, "", "within the communicator"),
    Field("ranks", &Communicator::ranks, "", "how many there are; null if NCCL doesn't say"),
    Field("nodes", &Communicator::nodes, "", "on how many hosts; null if NCCL doesn't say"),
    Field("name", &Communicator::name, "", "given by the program, often empty"),
    Field("joined_ns", &Communicator::joined_ns, "ns", "when the rank joined"),
    Field("left_ns", &Communicator::left_ns, "ns", "when it left; null before"),
    Field("dropped", &Communicator::dropped, "", "collectives that could not be kept, so far"),
    Field("plugin_version", &Communicator::plugin_version, "",
          "version of the profiler plugin's interface that this NCCL uses"));

}  // namespace gpusonde::model
