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

// Memory of a cached row, including what it points to.
size_t BytesOf(const std::vector<Id128>& stack);
size_t BytesOf(const LocationRow& location);
size_t BytesOf(const model::Profile::Function& function);
size_t BytesOf(const model::Profile::Binary& binary);

using RowVersion = uint64_t;

// A cache of rows of a keyed table, by key. Thread-safe.
template <class Row>
class KeptRows {
 public:
  using Found = std::unordered_map<Id128, std::shared_ptr<const Row>>;

  // Moves the ids that are cached from `ids` to `found`. Returns the cache's version, for Keep.
  RowVersion Find(std::vector<Id128>& ids, Found& found) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(ids, [&](const Id128& id) {
      const auto kept = rows_.find(id);
      if (kept != rows_.end()) found.insert(*kept);
      return kept != rows_.end();
    });
    return version_;
  }

  // Caches rows read since Find returned `since`; nothing if rows were invalidated meanwhile, since `rows`
  // may be among them. Clears the cache when it would grow beyond its limit.
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

  void Clear() {
    const std::scoped_lock lock(mutex_);
    ++version_;
    rows_.clear();
    bytes_ = 0;
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

// Caches of the names behind a profile's stacks. Ids are content hashes, so that a row changes only when more
// is known about it (a symbol, a line found later). Reading names from each day's file is most of a query's
// cost.
struct NameCache {
  KeptRows<std::vector<Id128>> stacks;  // by stack: its locations
  KeptRows<LocationRow> locations;
  KeptRows<model::Profile::Function> functions;
  KeptRows<model::Profile::Binary> binaries;

  // Invalidates the rows that `appended` replaces.
  void Forget(std::span<const model::Batch> appended);
  // Frees the memory of all rows.
  void Clear();
};

}  // namespace gpusonde::store
