// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/value.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "store/duckdb/handle.h"
#include "store/json.h"

namespace gpusonde::store::duckdb {
namespace {

__extension__ using Int128 = __int128;

Int128 Wide(duckdb_hugeint value) { return static_cast<Int128>(value.upper) << 64 | value.lower; }

// The value of any integer type but UHUGEINT, whose upper half doesn't fit; nothing for other types.
std::optional<Int128> IntegerOf(const Vector& vector, duckdb_type storage, uint64_t row) {
  switch (storage) {
    case DUCKDB_TYPE_BOOLEAN:
    case DUCKDB_TYPE_UTINYINT:
      return vector.At<uint8_t>(row);
    case DUCKDB_TYPE_TINYINT:
      return vector.At<int8_t>(row);
    case DUCKDB_TYPE_SMALLINT:
      return vector.At<int16_t>(row);
    case DUCKDB_TYPE_USMALLINT:
      return vector.At<uint16_t>(row);
    case DUCKDB_TYPE_INTEGER:
      return vector.At<int32_t>(row);
    case DUCKDB_TYPE_UINTEGER:
      return vector.At<uint32_t>(row);
    case DUCKDB_TYPE_BIGINT:
      return vector.At<int64_t>(row);
    case DUCKDB_TYPE_UBIGINT:
      return vector.At<uint64_t>(row);
    case DUCKDB_TYPE_HUGEINT:
      return Wide(vector.At<duckdb_hugeint>(row));
    default:
      return std::nullopt;
  }
}

duckdb_hugeint Narrow(Int128 value) {
  return {static_cast<uint64_t>(value), static_cast<int64_t>(value >> 64)};
}

// A scalar whose text is left to DuckDB: calendar arithmetic is its business.
duckdb_value MakeValue(const Library& library, const Vector& vector, uint64_t row) {
  const std::string_view bytes = vector.Bytes(row);
  auto* data = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
  switch (vector.type->id) {
    case DUCKDB_TYPE_DATE:
      return library.create_date(vector.At<duckdb_date>(row));
    case DUCKDB_TYPE_TIME:
      return library.create_time(vector.At<duckdb_time>(row));
    case DUCKDB_TYPE_TIME_NS:
      return library.create_time_ns(vector.At<duckdb_time_ns>(row));
    case DUCKDB_TYPE_TIME_TZ:
      return library.create_time_tz_value(vector.At<duckdb_time_tz>(row));
    case DUCKDB_TYPE_TIMESTAMP:
      return library.create_timestamp(vector.At<duckdb_timestamp>(row));
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return library.create_timestamp_tz(vector.At<duckdb_timestamp>(row));
    case DUCKDB_TYPE_TIMESTAMP_S:
      return library.create_timestamp_s(vector.At<duckdb_timestamp_s>(row));
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return library.create_timestamp_ms(vector.At<duckdb_timestamp_ms>(row));
    case DUCKDB_TYPE_TIMESTAMP_NS:
      return library.create_timestamp_ns(vector.At<duckdb_timestamp_ns>(row));
    case DUCKDB_TYPE_INTERVAL:
      return library.create_interval(vector.At<duckdb_interval>(row));
    case DUCKDB_TYPE_HUGEINT:
      return library.create_hugeint(vector.At<duckdb_hugeint>(row));
    case DUCKDB_TYPE_UHUGEINT:
      return library.create_uhugeint(vector.At<duckdb_uhugeint>(row));
    case DUCKDB_TYPE_DECIMAL: {
      const Int128 value = IntegerOf(vector, vector.type->storage, row).value_or(0);
      return library.create_decimal({vector.type->width, vector.type->scale, Narrow(value)});
    }
    case DUCKDB_TYPE_BLOB:
      return library.create_blob(data, bytes.size());
    case DUCKDB_TYPE_BIT:
      return library.create_bit({data, bytes.size()});
    default:
      return nullptr;
  }
}

std::string DuckDbText(const Library& library, const Vector& vector, uint64_t row) {
  const Handle<duckdb_value> value(library.destroy_value, MakeValue(library, vector, row));
  if (value.get() == nullptr) return "?";
  char* text = library.get_varchar(value.get());
  std::string copy = text == nullptr ? "?" : text;
  library.free(text);
  return copy;
}

struct Span {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Which rows of the child vector are the elements of a LIST, ARRAY or MAP.
Span Elements(const Vector& vector, uint64_t row) {
  if (vector.type->id == DUCKDB_TYPE_ARRAY)
    return {row * vector.type->array_size, (row + 1) * vector.type->array_size};
  const auto entry = vector.At<duckdb_list_entry>(row);
  return {entry.offset, entry.offset + entry.length};
}

template <class Render>
std::string JoinElements(const Vector& vector, uint64_t row, Render&& render) {
  std::string joined = "[";
  const Span span = Elements(vector, row);
  for (uint64_t i = span.begin; i < span.end; ++i) {
    if (i != span.begin) joined += ", ";
    joined += render(vector.children[0], i);
  }
  return joined += "]";
}

template <class Render>
std::string JoinFields(const Vector& vector, uint64_t row, Render&& render) {
  std::string joined = "{";
  for (size_t i = 0; i < vector.children.size(); ++i) {
    if (i != 0) joined += ", ";
    joined += JsonString(vector.type->names[i]) + ": " + render(vector.children[i], row);
  }
  return joined += "}";
}

template <class Key, class Render>
std::string JoinEntries(const Vector& vector, uint64_t row, Key&& key, Render&& render) {
  std::string joined = "{";
  const Span span = Elements(vector, row);
  for (uint64_t i = span.begin; i < span.end; ++i) {
    if (i != span.begin) joined += ", ";
    joined += key(vector.children[0], i) + ": " + render(vector.children[1], i);
  }
  return joined += "}";
}

// The member that a UNION holds.
const Vector& MemberOf(const Vector& vector, uint64_t row) {
  const size_t tag = vector.children[0].At<uint8_t>(row);
  return vector.children[tag + 1 < vector.children.size() ? tag + 1 : 0];
}

}  // namespace

Vector::Vector(const Library& library, const Type& of, duckdb_vector vector)
    : type(&of), data(library.vector_get_data(vector)), validity(library.vector_get_validity(vector)) {
  switch (of.id) {
    case DUCKDB_TYPE_LIST:
      children.emplace_back(library, of.children[0], library.list_vector_get_child(vector));
      break;
    case DUCKDB_TYPE_ARRAY:
      children.emplace_back(library, of.children[0], library.array_vector_get_child(vector));
      break;
    case DUCKDB_TYPE_MAP: {  // a list of structs of key and value
      duckdb_vector entries = library.list_vector_get_child(vector);
      for (idx_t i = 0; i < 2; ++i)
        children.emplace_back(library, of.children[i], library.struct_vector_get_child(entries, i));
      break;
    }
    case DUCKDB_TYPE_STRUCT:
    case DUCKDB_TYPE_UNION:
      for (idx_t i = 0; i < of.children.size(); ++i)
        children.emplace_back(library, of.children[i], library.struct_vector_get_child(vector, i));
      break;
    default:
      break;
  }
}

std::string_view Vector::Bytes(uint64_t row) const {
  switch (type->id) {
    case DUCKDB_TYPE_VARCHAR:
    case DUCKDB_TYPE_BLOB:
    case DUCKDB_TYPE_BIT:
    case DUCKDB_TYPE_BIGNUM:
      break;
    default:
      return {};
  }
  const auto& text = static_cast<const duckdb_string_t*>(data)[row];
  const uint32_t length = text.value.inlined.length;
  return {length <= sizeof text.value.inlined.inlined ? text.value.inlined.inlined : text.value.pointer.ptr,
          length};
}

int64_t Int64Of(const Vector& vector, uint64_t row) {
  if (vector.IsNull(row)) return 0;
  const std::optional<Int128> value = IntegerOf(vector, vector.type->id, row);
  if (!value.has_value() || *value < std::numeric_limits<int64_t>::min() ||
      *value > std::numeric_limits<int64_t>::max())
    return 0;
  return static_cast<int64_t>(*value);
}

double Float64Of(const Vector& vector, uint64_t row) {
  if (vector.IsNull(row)) return 0;
  switch (vector.type->id) {
    case DUCKDB_TYPE_FLOAT:
      return static_cast<double>(vector.At<float>(row));
    case DUCKDB_TYPE_DOUBLE:
      return vector.At<double>(row);
    case DUCKDB_TYPE_DECIMAL:
      return static_cast<double>(IntegerOf(vector, vector.type->storage, row).value_or(0)) /
             std::pow(10.0, vector.type->scale);
    default:
      return static_cast<double>(IntegerOf(vector, vector.type->id, row).value_or(0));
  }
}

std::string_view TextOf(const Vector& vector, uint64_t row) {
  if (vector.IsNull(row)) return {};
  if (vector.type->id != DUCKDB_TYPE_ENUM) return vector.Bytes(row);
  const auto index = static_cast<size_t>(IntegerOf(vector, vector.type->storage, row).value_or(0));
  return index < vector.type->names.size() ? vector.type->names[index] : std::string_view{};
}

std::string DisplayOf(const Library& library, const Vector& vector, uint64_t row) {
  const auto recurse = [&](const Vector& child, uint64_t i) { return DisplayOf(library, child, i); };
  if (vector.IsNull(row)) return "NULL";
  switch (vector.type->id) {
    case DUCKDB_TYPE_SQLNULL:
      return "NULL";
    case DUCKDB_TYPE_BOOLEAN:
      return vector.At<uint8_t>(row) != 0 ? "true" : "false";
    case DUCKDB_TYPE_TINYINT:
    case DUCKDB_TYPE_SMALLINT:
    case DUCKDB_TYPE_INTEGER:
    case DUCKDB_TYPE_BIGINT:
    case DUCKDB_TYPE_UTINYINT:
    case DUCKDB_TYPE_USMALLINT:
    case DUCKDB_TYPE_UINTEGER:
      return fmt::to_string(Int64Of(vector, row));
    case DUCKDB_TYPE_UBIGINT:
      return fmt::to_string(vector.At<uint64_t>(row));
    case DUCKDB_TYPE_FLOAT:
      return fmt::to_string(vector.At<float>(row));
    case DUCKDB_TYPE_DOUBLE:
      return fmt::to_string(vector.At<double>(row));
    case DUCKDB_TYPE_VARCHAR:
    case DUCKDB_TYPE_ENUM:
      return std::string(TextOf(vector, row));
    case DUCKDB_TYPE_UUID:
      return IdOf(vector.At<duckdb_hugeint>(row)).ToHex();
    case DUCKDB_TYPE_LIST:
    case DUCKDB_TYPE_ARRAY:
      return JoinElements(vector, row, recurse);
    case DUCKDB_TYPE_STRUCT:
      return JoinFields(vector, row, recurse);
    case DUCKDB_TYPE_MAP:
      return JoinEntries(vector, row, recurse, recurse);
    case DUCKDB_TYPE_UNION:
      return DisplayOf(library, MemberOf(vector, row), row);
    default:
      return DuckDbText(library, vector, row);
  }
}

std::string JsonOf(const Library& library, const Vector& vector, uint64_t row) {
  const auto recurse = [&](const Vector& child, uint64_t i) { return JsonOf(library, child, i); };
  const auto key = [&](const Vector& child, uint64_t i) { return JsonString(DisplayOf(library, child, i)); };
  if (vector.IsNull(row)) return "null";
  switch (vector.type->id) {
    case DUCKDB_TYPE_SQLNULL:
      return "null";
    case DUCKDB_TYPE_BOOLEAN:
    case DUCKDB_TYPE_TINYINT:
    case DUCKDB_TYPE_SMALLINT:
    case DUCKDB_TYPE_INTEGER:
    case DUCKDB_TYPE_BIGINT:
    case DUCKDB_TYPE_UTINYINT:
    case DUCKDB_TYPE_USMALLINT:
    case DUCKDB_TYPE_UINTEGER:
    case DUCKDB_TYPE_UBIGINT:
    case DUCKDB_TYPE_HUGEINT:
    case DUCKDB_TYPE_UHUGEINT:
    case DUCKDB_TYPE_DECIMAL:
      return DisplayOf(library, vector, row);
    case DUCKDB_TYPE_FLOAT:
    case DUCKDB_TYPE_DOUBLE:
      return std::isfinite(Float64Of(vector, row)) ? DisplayOf(library, vector, row) : "null";
    case DUCKDB_TYPE_LIST:
    case DUCKDB_TYPE_ARRAY:
      return JoinElements(vector, row, recurse);
    case DUCKDB_TYPE_STRUCT:
      return JoinFields(vector, row, recurse);
    case DUCKDB_TYPE_MAP:
      return JoinEntries(vector, row, key, recurse);
    case DUCKDB_TYPE_UNION:
      return JsonOf(library, MemberOf(vector, row), row);
    default:
      return JsonString(DisplayOf(library, vector, row));
  }
}

}  // namespace gpusonde::store::duckdb
