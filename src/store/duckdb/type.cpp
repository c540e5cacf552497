// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/type.h"

#include <fmt/format.h>

#include "store/duckdb/handle.h"

namespace gpusonde::store::duckdb {
namespace {

Type DescribeChild(const Library& library, duckdb_logical_type type) {
  const Handle<duckdb_logical_type> child(library.destroy_logical_type, type);
  return DescribeType(library, child.get());
}

std::string TakeText(const Library& library, char* text) {
  std::string copy = text == nullptr ? "" : text;
  library.free(text);
  return copy;
}

const char* ScalarName(duckdb_type id) {
  switch (id) {
    case DUCKDB_TYPE_BOOLEAN:
      return "BOOLEAN";
    case DUCKDB_TYPE_TINYINT:
      return "TINYINT";
    case DUCKDB_TYPE_SMALLINT:
      return "SMALLINT";
    case DUCKDB_TYPE_INTEGER:
      return "INTEGER";
    case DUCKDB_TYPE_BIGINT:
      return "BIGINT";
    case DUCKDB_TYPE_UTINYINT:
      return "UTINYINT";
    case DUCKDB_TYPE_USMALLINT:
      return "USMALLINT";
    case DUCKDB_TYPE_UINTEGER:
      return "UINTEGER";
    case DUCKDB_TYPE_UBIGINT:
      return "UBIGINT";
    case DUCKDB_TYPE_FLOAT:
      return "FLOAT";
    case DUCKDB_TYPE_DOUBLE:
      return "DOUBLE";
    case DUCKDB_TYPE_TIMESTAMP:
      return "TIMESTAMP";
    case DUCKDB_TYPE_DATE:
      return "DATE";
    case DUCKDB_TYPE_TIME:
      return "TIME";
    case DUCKDB_TYPE_INTERVAL:
      return "INTERVAL";
    case DUCKDB_TYPE_HUGEINT:
      return "HUGEINT";
    case DUCKDB_TYPE_UHUGEINT:
      return "UHUGEINT";
    case DUCKDB_TYPE_VARCHAR:
      return "VARCHAR";
    case DUCKDB_TYPE_BLOB:
      return "BLOB";
    case DUCKDB_TYPE_TIMESTAMP_S:
      return "TIMESTAMP_S";
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return "TIMESTAMP_MS";
    case DUCKDB_TYPE_TIMESTAMP_NS:
      return "TIMESTAMP_NS";
    case DUCKDB_TYPE_ENUM:
      return "ENUM";
    case DUCKDB_TYPE_MAP:
      return "MAP";
    case DUCKDB_TYPE_UUID:
      return "UUID";
    case DUCKDB_TYPE_UNION:
      return "UNION";
    case DUCKDB_TYPE_BIT:
      return "BIT";
    case DUCKDB_TYPE_TIME_TZ:
      return "TIMETZ";
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return "TIMESTAMPTZ";
    case DUCKDB_TYPE_BIGNUM:
      return "BIGNUM";
    case DUCKDB_TYPE_SQLNULL:
      return "NULL";
    case DUCKDB_TYPE_TIME_NS:
      return "TIME_NS";
    default:
      return "UNKNOWN";
  }
}

}  // namespace

Type DescribeType(const Library& library, duckdb_logical_type type) {
  Type described;
  described.id = library.get_type_id(type);
  switch (described.id) {
    case DUCKDB_TYPE_DECIMAL:
      described.storage = library.decimal_internal_type(type);
      described.width = library.decimal_width(type);
      described.scale = library.decimal_scale(type);
      break;
    case DUCKDB_TYPE_ENUM:
      described.storage = library.enum_internal_type(type);
      for (idx_t i = 0; i < library.enum_dictionary_size(type); ++i)
        described.names.push_back(TakeText(library, library.enum_dictionary_value(type, i)));
      break;
    case DUCKDB_TYPE_LIST:
      described.children.push_back(DescribeChild(library, library.list_type_child_type(type)));
      break;
    case DUCKDB_TYPE_ARRAY:
      described.children.push_back(DescribeChild(library, library.array_type_child_type(type)));
      described.array_size = library.array_type_array_size(type);
      break;
    case DUCKDB_TYPE_MAP:
      described.children.push_back(DescribeChild(library, library.map_type_key_type(type)));
      described.children.push_back(DescribeChild(library, library.map_type_value_type(type)));
      break;
    case DUCKDB_TYPE_STRUCT:
      for (idx_t i = 0; i < library.struct_type_child_count(type); ++i) {
        described.names.push_back(TakeText(library, library.struct_type_child_name(type, i)));
        described.children.push_back(DescribeChild(library, library.struct_type_child_type(type, i)));
      }
      break;
    case DUCKDB_TYPE_UNION:
      described.children.push_back({.id = DUCKDB_TYPE_UTINYINT});
      for (idx_t i = 0; i < library.union_type_member_count(type); ++i) {
        described.names.push_back(TakeText(library, library.union_type_member_name(type, i)));
        described.children.push_back(DescribeChild(library, library.union_type_member_type(type, i)));
      }
      break;
    default:
      break;
  }
  return described;
}

std::string TypeName(const Type& type) {
  switch (type.id) {
    case DUCKDB_TYPE_DECIMAL:
      return fmt::format("DECIMAL({},{})", type.width, type.scale);
    case DUCKDB_TYPE_LIST:
      return TypeName(type.children[0]) + "[]";
    case DUCKDB_TYPE_ARRAY:
      return fmt::format("{}[{}]", TypeName(type.children[0]), type.array_size);
    case DUCKDB_TYPE_MAP:
      return fmt::format("MAP({}, {})", TypeName(type.children[0]), TypeName(type.children[1]));
    case DUCKDB_TYPE_STRUCT: {
      std::string fields;
      for (size_t i = 0; i < type.children.size(); ++i)
        fields += fmt::format("{}{} {}", i == 0 ? "" : ", ", type.names[i], TypeName(type.children[i]));
      return fmt::format("STRUCT({})", fields);
    }
    default:
      return ScalarName(type.id);
  }
}

}  // namespace gpusonde::store::duckdb
