// SPDX-License-Identifier: Apache-2.0
#include "store/name_cache.h"

#include <cstring>

#include "model/tables/binaries.h"
#include "model/tables/functions.h"
#include "model/tables/locations.h"
#include "model/tables/stacks.h"

namespace gpusonde::store {
namespace {

// The values of a table's first column.
std::vector<Id128> KeysOf(const model::Batch& batch, const model::TableInfo& table) {
  for (const model::ColumnData& column : batch.columns) {
    if (column.name != table.columns[0].name || column.type != model::ColumnType::kId128) continue;
    std::vector<Id128> keys(column.values.size() / sizeof(Id128));
    if (!keys.empty()) std::memcpy(keys.data(), column.values.data(), keys.size() * sizeof(Id128));
    return keys;
  }
  return {};
}

// Of an entry of the map: its node, the row's control block and their share of the buckets.
constexpr size_t kEntryBytes = 80;

}  // namespace

size_t BytesOf(const std::vector<Id128>& stack) {
  return kEntryBytes + sizeof(std::vector<Id128>) + stack.capacity() * sizeof(Id128);
}

size_t BytesOf(const LocationRow& location) {
  return kEntryBytes + sizeof(location) + location.functions.capacity() * sizeof(Id128) +
         location.lines.capacity() * sizeof(int64_t);
}

size_t BytesOf(const model::Profile::Function& function) {
  return kEntryBytes + sizeof(function) + function.name.capacity() + function.system_name.capacity() +
         function.file.capacity();
}

size_t BytesOf(const model::Profile::Binary& binary) {
  return kEntryBytes + sizeof(binary) + binary.name.capacity() + binary.path.capacity() +
         binary.build_id.capacity();
}

void NameCache::Forget(std::span<const model::Batch> appended) {
  const auto forget = [](auto& rows, const model::Batch& batch, const auto& table) {
    if (batch.table == table.name()) rows.Forget(KeysOf(batch, table.info()));
  };
  for (const model::Batch& batch : appended) {
    forget(stacks, batch, model::kStacks);
    forget(locations, batch, model::kLocations);
    forget(functions, batch, model::kFunctions);
    forget(binaries, batch, model::kBinaries);
  }
}

void NameCache::Clear() {
  stacks.Clear();
  locations.Clear();
  functions.Clear();
  binaries.Clear();
}

}  // namespace gpusonde::store
