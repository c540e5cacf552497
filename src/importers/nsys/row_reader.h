// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "importers/nsys/schema.h"
#include "importers/sqlite/table.h"
#include "importers/trace.h"

namespace gpusonde::importers::nsys {

struct OpenTable {
  TableKind kind;
  sqlite::Table table;
};

// Turns rows into events, for one thread.
class RowReader final : public ShardReader {
 public:
  RowReader(std::span<const OpenTable> tables, const std::optional<sqlite::Table>& strings, EventSink& sink)
      : tables_(tables), readers_(tables.size()), strings_(strings), sink_(sink) {}

  Status Read(const Shard& shard) override;

 private:
  // A table as this thread reads it: which cell holds which column; a column that isn't there has the last
  // cell, which is always null.
  struct Reading {
    std::unique_ptr<sqlite::TableReader> rows;
    std::array<uint8_t, 14> cell_of{};
  };

  Status Begin(size_t index);
  Status Dispatch(Kind kind, const Reading& reading);
  Status AddKernel(const Reading& reading);
  void AddMemcpy(const Reading& reading);
  void AddMemset(const Reading& reading);
  Status AddCall(const Reading& reading);
  void AddRange(const Reading& reading);

  const sqlite::Cell& At(const Reading& reading, size_t column) const {
    return row_.cells[reading.cell_of[column]];
  }
  // The start and end of the current row, or false after counting why not.
  bool Times(const Reading& reading, int64_t& start_ns, int64_t& end_ns);
  bool FillGpu(const Reading& reading, GpuEvent& event);
  // The sink's id of a string of StringIds.
  Result<uint32_t> NameOf(const sqlite::Cell& cell);
  Result<uint32_t> LookUpName(int64_t string_id);

  std::span<const OpenTable> tables_;
  std::vector<Reading> readers_;  // as tables_
  const std::optional<sqlite::Table>& strings_;
  std::unique_ptr<sqlite::TableReader> string_reader_;
  std::unordered_map<int64_t, uint32_t> names_;
  // Names looked up lately, by a few bits of their ids.
  struct Recent {
    int64_t id = -1;
    uint32_t name = 0;
  };
  std::array<Recent, 256> recent_;
  EventSink& sink_;
  sqlite::Row row_;
  EventBatch batch_;
};

}  // namespace gpusonde::importers::nsys
