// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/id128.h"
#include "model/batch.h"
#include "model/profile.h"

namespace gpusonde::store {

// A row of `locations`.
struct LocationRow {
  model::FrameKind kind{};
  Id128 binary;
  int64_t address = 0;
  std::vector<Id128> functions;
  std::vector<int64_t> lines;
  bool has_lines = false;  // one that isn't 0, "unknown"
};

// What a kept row takes, with what it points to.
size_t BytesOf(const std::vector<Id128>& stack);
size_t BytesOf(const LocationRow& location);
size_t BytesOf(const model::Profile::Function& function);
size_t BytesOf(const model::Profile::Binary& binary);

using RowVersion = uint64_t;

// Rows of a keyed table by their first column, kept from one question to the next. Thread-safe.
template <class Row>
class KeptRows {
 public:
  using Found = std::unordered_map<Id128, std::shared_ptr<const Row>>;

  // Adds those of `ids` that are kept to `found`, takes them out of `ids`, and says as of when that is.
  RowVersion Find(std::vector<Id128>& ids, Found& found) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(ids, [&](const Id128& id) {
      const auto kept = rows_.find(id);
      if (kept != rows_.end()) found.insert(*kept);
      return kept != rows_.end();
    });
    return version_;
  }

  // Keeps what was read since Find; nothing, if something was forgotten meanwhile: it may be that. What was
  // kept before makes room.
  void Keep(const Found& rows, RowVersion since) {
    const std::scoped_lock lock(mutex_);
    if (version_ != since) return;
    size_t bytes = 0;
    for (const auto& [id, row] : rows) bytes += BytesOf(*row);
    if (bytes > kMaxBytes) return;
    if (bytes_ + bytes > kMaxBytes) {
      rows_.clear();
      bytes_ = 0;
    }
    for (const auto& [id, row] : rows)
      if (rows_.emplace(id, row).second) bytes_ += BytesOf(*row);
  }

  void Forget(std::span<const Id128> ids) {
    const std::scoped_lock lock(mutex_);
    ++version_;
    for (const Id128& id : ids) {
      const auto row = rows_.find(id);
      if (row == rows_.end()) continue;
      bytes_ -= BytesOf(*row->second);
      rows_.erase(row);
    }
  }

  size_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }

  // A busy node's week has some ten thousand rows of each, of 100 to 500 bytes.
  static constexpr size_t kMaxBytes = 16 << 20;

 private:
  mutable std::mutex mutex_;
  RowVersion version_ = 0;
  size_t bytes_ = 0;
  Found rows_;
};

// The names behind a profile's stacks. They are hashes of what they stand for, so that a row changes only to
// say more of it (a symbol, a line that was found later); most of what a question costs is to read them, from
// the file of every day.
struct NameCache {
  KeptRows<std::vector<Id128>> stacks;  // by stack: its locations
  KeptRows<LocationRow> locations;
  KeptRows<model::Profile::Function> functions;
  KeptRows<model::Profile::Binary> binaries;

  // To be called once a store has new rows.
  void Forget(std::span<const model::Batch> appended);
};

}  // namespace gpusonde::store
