// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per collective that a rank called, when it has ended; of one that lasts longer than a second also
// rows without an end.
struct Collective {
  Id128 process;
  int32_t tid = 0;
  std::string communicator;
  int32_t rank = 0;
  std::string operation;
  int64_t sequence = 0;
  int64_t called_ns = 0;
  std::optional<int64_t> enqueued_ns;
  std::optional<int64_t> begin_ns;
  std::optional<int64_t> end_ns;
  std::optional<int64_t> gpu_ns;
  int64_t count = 0;
  std::string datatype;
  std::optional<int64_t> bytes;
  int32_t root = 0;
  std::string algorithm;
  std::string protocol;
  int32_t channels = 0;
};

inline constexpr Table kCollectives(
    "collectives", kFacts,
    "One row per collective that a rank called, when it has ended; of one that lasts longer than a second "
    "also rows "
    "without an end",
    Field("process", &Collective::process, "", "the process of the rank"),
    Field("tid", &Collective::tid, "", "the thread that called it, in the process's own pid namespace"),
    Field("communicator", &Collective::communicator, "", "as in `communicators`"),
    Field("rank", &Collective::rank, "", "within the communicator"),
    Field("operation", &Collective::operation, "", "AllReduce, Broadcast, …"),
    Field("sequence", &Collective::sequence, "",
          "of this operation in this communicator, the same on all ranks"),
    Field("called_ns", &Collective::called_ns, "ns", "when NCCL began to enqueue it"),
    Field("enqueued_ns", &Collective::enqueued_ns, "ns", "when it was enqueued; null before"),
    Field("begin_ns", &Collective::begin_ns, "ns", "when NCCL saw its kernel begin; null if it hasn't"),
    Field("end_ns", &Collective::end_ns, "ns", "when NCCL saw its kernel end; null if it hasn't"),
    Field("gpu_ns", &Collective::gpu_ns, "ns",
          "how long its kernel ran, by the GPU's clock; shortest on the rank that came last"),
    Field("count", &Collective::count, "", "elements, as the operation counts them"),
    Field("datatype", &Collective::datatype, "", "of an element: ncclFloat32"),
    Field("bytes", &Collective::bytes, "bytes", "count × size of an element; null for an unknown type"),
    Field("root", &Collective::root, "", "rank of the root, where the operation has one"),
    Field("algorithm", &Collective::algorithm, "", "RING, TREE, …"),
    Field("protocol", &Collective::protocol, "", "LL, LL128 or SIMPLE"),
    Field("channels", &Collective::channels, "", "channels that its kernel uses"));

}  // namespace gpusonde::model
