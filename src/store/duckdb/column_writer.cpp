// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/column_writer.h"

#include <cstring>
#include <string>
#include <string_view>

#include "base/id128.h"
#include "base/utf8.h"
#include "store/duckdb/handle.h"
#include "store/duckdb/value.h"

namespace gpusonde::store::duckdb {
namespace {

duckdb_type ScalarType(model::ColumnType type) {
  switch (type) {
    case model::ColumnType::kBool:
      return DUCKDB_TYPE_BOOLEAN;
    case model::ColumnType::kInt32:
      return DUCKDB_TYPE_INTEGER;
    case model::ColumnType::kInt64:
    case model::ColumnType::kInt64List:
      return DUCKDB_TYPE_BIGINT;
    case model::ColumnType::kFloat64:
      return DUCKDB_TYPE_DOUBLE;
    case model::ColumnType::kText:
      return DUCKDB_TYPE_VARCHAR;
    case model::ColumnType::kId128:
    case model::ColumnType::kIdList:
      return DUCKDB_TYPE_UUID;
  }
  return DUCKDB_TYPE_INVALID;
}

bool IsList(model::ColumnType type) {
  return type == model::ColumnType::kIdList || type == model::ColumnType::kInt64List;
}

void CopyIds(const std::byte* source, size_t count, duckdb_vector vector, const Library& library) {
  auto* target = static_cast<duckdb_hugeint*>(library.vector_get_data(vector));
  for (size_t i = 0; i < count; ++i) {
    Id128 id;
    std::memcpy(&id, source + i * sizeof id, sizeof id);
    target[i] = UuidOf(id);
  }
}

// `type` is one of fixed width; of a list type, its elements are copied.
void CopyFixed(const Library& library, model::ColumnType type, const std::byte* source, size_t count,
               duckdb_vector vector) {
  if (count == 0) return;
  if (ScalarType(type) == DUCKDB_TYPE_UUID) {
    CopyIds(source, count, vector, library);
  } else if (type == model::ColumnType::kBool) {
    // From outside a bool may be any byte; DuckDB must only see 0 and 1.
    auto* target = static_cast<bool*>(library.vector_get_data(vector));
    for (size_t i = 0; i < count; ++i) target[i] = source[i] != std::byte{0};
  } else {
    std::memcpy(library.vector_get_data(vector), source, count * model::WidthOf(type));
  }
}

void CopyText(const Library& library, const model::ColumnData& data, size_t from, size_t count,
              duckdb_vector vector) {
  const char* bytes = reinterpret_cast<const char*>(data.values.data());
  auto* target = static_cast<duckdb_string_t*>(library.vector_get_data(vector));
  uint32_t begin = from == 0 ? 0 : data.ends[from - 1];
  for (size_t i = 0; i < count; ++i) {
    const uint32_t end = data.ends[from + i];
    const std::string_view text(bytes + begin, end - begin);
    begin = end;
    if (!IsUtf8(text)) {
      const std::string valid = ToUtf8(text);
      library.vector_assign_string_element_len(vector, i, valid.data(), valid.size());
    } else if (text.size() <= sizeof target->value.inlined.inlined) {
      // Short text lies in the vector itself; most of ours is, and this skips a call for each.
      target[i] = {};
      target[i].value.inlined.length = static_cast<uint32_t>(text.size());
      if (!text.empty()) std::memcpy(target[i].value.inlined.inlined, text.data(), text.size());
    } else {
      library.vector_assign_string_element_len(vector, i, text.data(), text.size());
    }
  }
}

void CopyList(const Library& library, const model::ColumnData& data, size_t from, size_t count,
              duckdb_vector vector) {
  const uint32_t first = from == 0 ? 0 : data.ends[from - 1];
  const uint32_t last = data.ends[from + count - 1];
  library.list_vector_reserve(vector, last - first);
  library.list_vector_set_size(vector, last - first);
  auto* entries = static_cast<duckdb_list_entry*>(library.vector_get_data(vector));
  uint32_t begin = first;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t end = data.ends[from + i];
    entries[i] = {begin - first, end - begin};
    begin = end;
  }
  CopyFixed(library, data.type, data.values.data() + first * model::WidthOf(data.type), last - first,
            library.list_vector_get_child(vector));
}

void ClearBit(uint64_t* validity, size_t row) { validity[row / 64] &= ~(uint64_t{1} << row % 64); }

void WriteNulls(const Library& library, const model::ColumnData* data, size_t from, size_t count,
                duckdb_vector vector) {
  if (data != nullptr && data->valid.empty()) return;
  library.vector_ensure_validity_writable(vector);
  uint64_t* validity = library.vector_get_validity(vector);
  for (size_t i = 0; i < count; ++i)
    if (data == nullptr || data->valid[from + i] == 0) ClearBit(validity, i);
}

// Zero bits are zero, "" and the empty list; only the zero id has a bit set.
void WriteEmpty(const Library& library, const model::ColumnInfo& column, size_t count, duckdb_vector vector) {
  if (column.type == model::ColumnType::kId128) {
    auto* target = static_cast<duckdb_hugeint*>(library.vector_get_data(vector));
    for (size_t i = 0; i < count; ++i) target[i] = UuidOf({});
    return;
  }
  const size_t width = IsList(column.type)                       ? sizeof(duckdb_list_entry)
                       : column.type == model::ColumnType::kText ? sizeof(duckdb_string_t)
                                                                 : model::WidthOf(column.type);
  std::memset(library.vector_get_data(vector), 0, count * width);
}

}  // namespace

duckdb_logical_type MakeLogicalType(const Library& library, model::ColumnType type) {
  duckdb_logical_type scalar = library.create_logical_type(ScalarType(type));
  if (!IsList(type)) return scalar;
  const Handle<duckdb_logical_type> element(library.destroy_logical_type, scalar);
  return library.create_list_type(element.get());
}

void WriteColumn(const Library& library, const model::ColumnInfo& column, const model::ColumnData* data,
                 size_t from, size_t count, duckdb_vector vector) {
  if (data == nullptr) {
    WriteEmpty(library, column, count, vector);
  } else if (column.type == model::ColumnType::kText) {
    CopyText(library, *data, from, count, vector);
  } else if (IsList(column.type)) {
    CopyList(library, *data, from, count, vector);
  } else {
    CopyFixed(library, column.type, data->values.data() + from * model::WidthOf(column.type), count, vector);
  }
  if (column.nullable) WriteNulls(library, data, from, count, vector);
}

}  // namespace gpusonde::store::duckdb
