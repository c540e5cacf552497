// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems whose pages are whole, and whose tables, columns and values may be any: what lies
// above the decoding of pages, which fuzz_nsys_sqlite seldom passes.
#include <sqlite3.h>

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze_file.h"
#include "convert_file.h"
#include "fuzzed_file.h"

namespace {

// The tables and columns that the importer reads.
struct Declared {
  const char* name;
  std::vector<const char*> columns;
};
const std::array kDeclared = {
    Declared{"StringIds", {"id INTEGER PRIMARY KEY", "value"}},
    Declared{"CUPTI_ACTIVITY_KIND_KERNEL",
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName",
              "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "contextId",
              "graphNodeId", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"}},
    Declared{"CUPTI_ACTIVITY_KIND_MEMCPY",
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind",
              "srcKind", "dstKind", "contextId", "graphNodeId"}},
    Declared{"CUPTI_ACTIVITY_KIND_MEMSET",
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "memKind",
              "contextId", "graphNodeId"}},
    Declared{"CUPTI_ACTIVITY_KIND_RUNTIME",
             {"start", "end", "globalTid", "correlationId", "nameId", "returnValue"}},
    Declared{"OSRT_API", {"start", "end", "globalTid", "nameId", "returnValue"}},
    Declared{"PROCESSES", {"globalPid", "name"}},
    Declared{"ThreadNames", {"globalTid", "nameId"}},
    Declared{"NVTX_EVENTS",
             {"start", "end", "eventType", "globalTid", "text", "textId", "domainId", "binaryData",
              "jsonText", "jsonTextId"}},
    Declared{"NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "name", "offset"}},
    Declared{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "contextId", "syncType"}},
    Declared{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId", "contextId"}},
    Declared{"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}},
    Declared{"TARGET_INFO_GPU",
             {"id", "name", "uuid", "totalMemory", "smCount", "cuDevice", "busLocation", "maxWarpsPerSm",
              "threadsPerWarp", "maxBlocksPerSm", "maxRegistersPerSm", "maxShmemPerSm", "computeMajor",
              "computeMinor"}},
    Declared{"TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"}},
    Declared{"TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"}},
    Declared{"GPU_METRICS", {"timestamp", "typeId", "metricId", "value"}},
};

constexpr std::array<int64_t, 8> kEdges = {std::numeric_limits<int64_t>::min(),
                                           std::numeric_limits<int64_t>::max(),
                                           -1,
                                           int64_t{1} << 31,
                                           (int64_t{1} << 31) - 1,
                                           int64_t{1} << 32,
                                           int64_t{1} << 62,
                                           (int64_t{1} << 56) | (100 << 24) | 100};

// Draws what to write from the input; zeros after its end.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  int64_t Number(size_t bytes) {
    uint64_t value = 0;
    for (; bytes > 0 && !bytes_.empty(); --bytes) {
      value = value << 8 | bytes_.front();
      bytes_ = bytes_.subspan(1);
    }
    return static_cast<int64_t>(value);
  }
  std::string_view Bytes(size_t count) {
    const auto taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::span<const uint8_t> bytes_;
};

void Bind(Input& input, sqlite3_stmt* statement, int index) {
  const auto kind = static_cast<uint64_t>(input.Number(1));
  switch (kind % 8) {
    case 0:
      break;  // NULL
    case 1:
      sqlite3_bind_int64(statement, index, static_cast<int64_t>(kind / 8));
      break;
    case 2:
      sqlite3_bind_int64(statement, index, input.Number(2));
      break;
    case 3:
      sqlite3_bind_int64(statement, index, input.Number(8));
      break;
    case 4:
      sqlite3_bind_int64(statement, index, kEdges.at(kind / 8 % kEdges.size()));
      break;
    case 5:
      sqlite3_bind_double(statement, index, static_cast<double>(input.Number(8)));
      break;
    default: {
      const std::string bytes(input.Bytes(kind / 8));
      const auto size = static_cast<int>(bytes.size());
      if (kind % 8 == 6)
        sqlite3_bind_text(statement, index, bytes.data(), size, SQLITE_TRANSIENT);
      else
        sqlite3_bind_blob(statement, index, bytes.data(), size, SQLITE_TRANSIENT);
    }
  }
}

// A table: which one, which of its columns, how many rows.
void AddTable(Input& input, sqlite3* database) {
  const Declared& declared = kDeclared.at(static_cast<size_t>(input.Number(1)) % kDeclared.size());
  const int64_t left_out = input.Number(3);
  std::string columns;
  std::string places;
  int count = 0;
  for (size_t i = 0; i < declared.columns.size(); ++i) {
    if ((left_out >> i & 1) != 0) continue;
    columns += count == 0 ? "" : ",";
    columns += declared.columns[i];
    places += count++ == 0 ? "?" : ",?";
  }
  const std::string name = declared.name;
  if (sqlite3_exec(database, ("CREATE TABLE " + name + "(" + columns + ")").c_str(), nullptr, nullptr,
                   nullptr) != SQLITE_OK)
    return;  // it is there, or has no columns
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, ("INSERT INTO " + name + " VALUES(" + places + ")").c_str(), -1,
                         &statement, nullptr) != SQLITE_OK)
    std::abort();
  for (int64_t rows = input.Number(1); rows > 0 && !input.empty(); --rows) {
    for (int i = 1; i <= count; ++i) Bind(input, statement, i);
    sqlite3_step(statement);  // fails for an id that is there
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
  }
  sqlite3_finalize(statement);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static FuzzedFile file;
  file.Fill({});
  sqlite3* database = nullptr;
  if (sqlite3_open(file.path().c_str(), &database) != SQLITE_OK) std::abort();
  sqlite3_exec(database, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=512; BEGIN",
               nullptr, nullptr, nullptr);
  Input input({data, size});
  while (!input.empty()) AddTable(input, database);
  if (sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) std::abort();
  sqlite3_close(database);
  AnalyzeFile(file.path());
  ConvertFile(file.path());
  return 0;
}
