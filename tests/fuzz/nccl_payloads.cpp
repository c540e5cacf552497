// SPDX-License-Identifier: Apache-2.0
// Payloads of NCCL's ranges, as bytes and as JSON. The bytes are decoded by layouts with all offsets that
// bounds are checked for.
#include <sqlite3.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "importers/activities/nccl_payloads.h"
#include "scratch_folder.h"

namespace {

using namespace gpusonde::importers;  // NOLINT(google-build-using-namespace): a program of its own
using activities::NcclPayload;
using activities::NcclPayloads;

// Domain 1 has calls with NCCL's own offsets, 2 such as lie at a payload's end or beyond it.
NcclPayloads Layouts() {
  const ScratchFolder folder;
  const std::string path = folder / "layouts.sqlite";
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK ||
      sqlite3_exec(database, R"(
        CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, name TEXT, offset INTEGER);
        INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES
          (1, 2, 'NCCL communicator ID', NULL), (1, 2, 'No. of ranks', 8),
          (1, 4, 'NCCL communicator ID', NULL), (1, 4, 'Message size [bytes]', 8),
          (2, 0, 'NCCL communicator ID', 4096), (2, 0, 'No. of ranks', 0),
          (2, 1, 'NCCL communicator ID', 1), (2, 1, 'No. of ranks', 4095),
          (2, 2, 'NCCL communicator ID', 24), (2, 2, 'No. of ranks', 29))",
                   nullptr, nullptr, nullptr) != SQLITE_OK)
    std::abort();
  sqlite3_close(database);
  const auto opened = sqlite::Database::Open(path);
  if (!opened.has_value()) std::abort();
  const auto layouts = NcclPayloads::Read(**opened);
  if (!layouts.has_value() || layouts->empty()) std::abort();
  return *layouts;
}

void Check(const std::optional<NcclPayload>& payload) {
  if (!payload.has_value()) return;
  if (payload->ranks < 0 || payload->ranks > std::numeric_limits<int32_t>::max()) std::abort();
  const ProcessGroup group = GroupOfCommunicator(*payload);
  if (group.identity == 0 || group.size != payload->ranks) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const NcclPayloads layouts = Layouts();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(layouts.DecodeBytes(text));
  Check(NcclPayloads::DecodeJson(text));
  return 0;
}
