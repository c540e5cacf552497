// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "importers/event.h"
#include "importers/sqlite/table.h"

// What NCCL says of its calls in NVTX payloads (src/include/nvtx_payload_schemas.h in NCCL), as Nsight
// Systems exports them: the layouts in NVTX_PAYLOAD_SCHEMA_ENTRIES and the bytes in NVTX_EVENTS.binaryData,
// or both as JSON. NVIDIA doesn't document the bytes: a header of 32 (the domain in the first 32 bits, the
// layout in the third, the payload's size in the third 64), and then the payload. That follows nsys-ai, which
// reads files of Nsight Systems 2026, and is unconfirmed: no trace that we have holds payloads.
namespace gpusonde::importers::activities {

// A call's payload.
struct NcclPayload {
  uint64_t communicator = 0;  // the same on all its ranks
  int64_t ranks = 0;          // that it has; 0 if the call doesn't say
  bool is_operation = false;  // the call moves data
  int64_t bytes = 0;          // of it, as NCCL counts: CommunicationCall::bytes
};

// The layouts of a trace's payloads. Thread-safe.
class NcclPayloads {
 public:
  // Empty if the trace declares none. Errors: those of reading the tables.
  static Result<NcclPayloads> Read(const sqlite::Database& database);

  bool empty() const { return layouts_.empty(); }
  // Whether ranges of the domain are NCCL's.
  bool IsNccl(int64_t domain) const;
  // Of any bytes and any text; empty if they aren't such a payload.
  std::optional<NcclPayload> DecodeBytes(std::string_view bytes) const;
  static std::optional<NcclPayload> DecodeJson(std::string_view text);

 private:
  // Where things are in a payload.
  struct Layout {
    std::optional<size_t> communicator;
    std::optional<size_t> ranks;
    std::optional<size_t> bytes;  // of operations
  };

  std::map<std::pair<uint64_t, uint64_t>, Layout> layouts_;  // by domain and number
};

// The process group of a communicator's ranks.
ProcessGroup GroupOfCommunicator(const NcclPayload& payload);

}  // namespace gpusonde::importers::activities
