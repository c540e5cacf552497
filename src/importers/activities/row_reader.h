// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/activities/nccl_payloads.h"
#include "importers/activities/strings.h"
#include "importers/activities/tables.h"
#include "importers/sqlite/table.h"
#include "importers/trace.h"

namespace gpusonde::importers::activities {

struct OpenTable {
  TableKind kind;
  sqlite::Table table;
};

// Turns rows into events, for one thread.
class RowReader final : public ShardReader {
 public:
  // All arguments but the sink belong to the trace. `only_launcher` is the process of GPU work that has none.
  RowReader(const Layout& layout, std::span<const OpenTable> tables, const Strings& strings,
            const NcclPayloads& nccl, int64_t only_launcher, bool detail, EventSink& sink)
      : layout_(layout),
        tables_(tables),
        nccl_(nccl),
        only_launcher_(only_launcher),
        detail_(detail),
        readers_(tables.size()),
        strings_(strings),
        sink_(sink) {}

  Status Read(const Shard& shard) override;

 private:
  // Maps the columns of a row, in the order of the kind's own enum, to values; a missing column maps to the
  // last value, which is not an integer.
  using Places = std::array<uint8_t, kMaxColumns>;

  // A recently used name.
  struct Recent {
    int64_t id = 0;
    uint32_t name = 0;
    bool known = false;
  };

  // A table with this thread's reader.
  struct Reading {
    std::unique_ptr<sqlite::TableReader> rows;
    Places places{};
    std::string_view name_prefix;
    bool labels = false;                          // its names are of ranges, of which only labels are needed
    std::unordered_map<int64_t, uint32_t> names;  // recent ones, by the number of the string, call or graph
    std::array<Recent, 256> recent;               // by a few bits of it
  };

  // One row of values.
  class Cells {
   public:
    Cells(const sqlite::IntegerRows& rows, size_t row, const Places& places)
        : values_(rows.values.data() + row * rows.stride), integers_(rows.integers[row]), places_(places) {}
    bool Has(size_t column) const { return (integers_ >> places_[column] & 1) != 0; }
    // 0 without one.
    int64_t operator[](size_t column) const { return values_[places_[column]]; }
    int64_t Or(size_t column, int64_t otherwise) const { return Has(column) ? (*this)[column] : otherwise; }
    std::optional<int64_t> If(size_t column) const {
      return Has(column) ? std::optional((*this)[column]) : std::nullopt;
    }

   private:
    const int64_t* values_;
    uint64_t integers_;
    const Places& places_;
  };

  Status Begin(size_t index);
  Status ReadRows(Reading& reading, Kind kind);
  Status Add(Reading& reading, Kind kind, const Cells& cells);
  // Adds an event to the batch, with what all work on a device has; null after counting the row as dropped.
  GpuEvent* AddGpu(const Cells& cells, GpuWork work);
  // Adds a kernel or a graph.
  Status AddNamedGpu(Reading& reading, const Cells& cells, GpuWork work, size_t name_column);
  void AddMemcpy(const Cells& cells);
  void AddMemset(const Cells& cells);
  Status AddCall(Reading& reading, const Cells& cells);
  // Of a call. nvprof has the lower half of what pthread_self returns, with or without a sign.
  static uint32_t ThreadOf(const Cells& cells);
  Status AddSpan(Reading& reading, const Cells& cells, SpanKind kind);
  void AddSync(const Cells& cells);
  // Reads rows whose names may be texts in them.
  Status ReadTexts(Reading& reading, Kind kind);
  Status AddNamedRange(Reading& reading, const sqlite::Row& row);
  // The name of a domain.
  Status AddDomain(Reading& reading, const sqlite::Row& row);
  // A range of NCCL's, with what its payload says.
  Status AddCommunication(Reading& reading, const sqlite::Row& row, const Span& span);
  // What a call of NCCL does that is named so.
  struct NcclCall {
    CommunicationCall::Kind kind = CommunicationCall::Kind::kOperation;
    Operation operation = Operation::kUnknown;
  };
  Result<NcclCall> NcclCallOf(int64_t text_id);
  void AddProcessName(const Reading& reading, const sqlite::Row& row);
  Status AddThreadName(const Reading& reading, const sqlite::Row& row);
  void AddMarker(const Cells& cells);

  // The start and end of a row; returns false after counting the row as dropped.
  bool Times(const Cells& cells, int64_t& start_ns, int64_t& end_ns);
  // The process of work on a device.
  int64_t WorkProcess(const Cells& cells, size_t column) const {
    return cells.Has(column) ? ProcessOf(cells[column]) : only_launcher_;
  }
  // The sink's id of the name whose number a column has.
  Result<uint32_t> NameOf(Reading& reading, const Cells& cells, size_t column);
  Result<uint32_t> NameOf(Reading& reading, int64_t id);
  uint32_t IdOf(const Reading& reading, std::string_view name);
  // The name of a string id, if the file has the string. Valid until the next call.
  Result<std::string_view> LookUpString(int64_t string_id);

  const Layout& layout_;
  std::span<const OpenTable> tables_;
  const NcclPayloads& nccl_;
  std::set<uint64_t> communicators_;             // whose groups the sink knows
  std::unordered_map<int64_t, NcclCall> calls_;  // by the number of their names
  int64_t only_launcher_;
  bool detail_;
  std::vector<Reading> readers_;  // as tables_
  const Strings& strings_;
  std::unique_ptr<sqlite::TableReader> string_reader_;
  std::string demangled_;
  EventSink& sink_;
  EventBatch batch_;
};

}  // namespace gpusonde::importers::activities
