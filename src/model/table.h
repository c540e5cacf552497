// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/id128.h"

namespace gpusonde::model {

// The types a column can have, the same in DuckDB, ClickHouse, the spool and in memory. Stored in the spool:
// append only.
enum class ColumnType : uint8_t {
  kBool = 0,
  kInt32 = 1,
  kInt64 = 2,
  kFloat64 = 3,
  kText = 4,       // UTF-8; untrusted text may be any bytes, shown with U+FFFD
  kId128 = 5,      // UUID in DuckDB and ClickHouse
  kIdList = 6,     // list of kId128
  kInt64List = 7,  // list of kInt64
};

// One column at run time; docs/schema.md and the CREATE TABLE statements are generated from it.
struct ColumnInfo {
  std::string_view name;
  ColumnType type;
  bool nullable;
  std::string_view unit;     // "ns", "bytes", "mW", … or "" where there is none
  std::string_view meaning;  // a phrase without a final stop
};

// One table at run time.
struct TableInfo {
  std::string_view name;
  std::string_view meaning;
  // The first `key_columns` columns identify a row, and a later row with the same key replaces the earlier
  // one. 0: rows are facts, only ever added.
  int key_columns;
  std::span<const ColumnInfo> columns;
};

// How many leading columns are a table's key; see TableInfo::key_columns.
struct Key {
  int columns = 0;
};
inline constexpr Key kFacts{0};

// An enumeration that is stored as text specialises this with `static std::string_view Name(E)`.
template <class E>
struct EnumNames;

namespace internal {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
struct ValueOf {
  using type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using type = T;
};

template <class T>
constexpr ColumnType TypeOf() {
  using Value = typename ValueOf<T>::type;
  if constexpr (std::is_same_v<Value, bool>) {
    return ColumnType::kBool;
  } else if constexpr (std::is_same_v<Value, int32_t>) {
    return ColumnType::kInt32;
  } else if constexpr (std::is_same_v<Value, int64_t>) {
    return ColumnType::kInt64;
  } else if constexpr (std::is_same_v<Value, double>) {
    return ColumnType::kFloat64;
  } else if constexpr (std::is_same_v<Value, std::string> || std::is_enum_v<Value>) {
    return ColumnType::kText;
  } else if constexpr (std::is_same_v<Value, Id128>) {
    return ColumnType::kId128;
  } else if constexpr (std::is_same_v<Value, std::vector<Id128>>) {
    return ColumnType::kIdList;
  } else {
    static_assert(std::is_same_v<Value, std::vector<int64_t>>, "no column type for this member");
    return ColumnType::kInt64List;
  }
}

// What std::tuple would hold, without its constructors: those of the tables took a twentieth of all compile
// time.
template <size_t I, class T>
struct Element {
  T value;
};
template <class Indices, class... Ts>
struct Elements;
template <size_t... I, class... Ts>
struct Elements<std::index_sequence<I...>, Ts...> : Element<I, Ts>... {};

}  // namespace internal

// One member of a row struct as a column. std::optional members are nullable columns.
template <class Row, class T>
struct Field {
  constexpr Field(std::string_view name, T Row::* pointer, std::string_view unit, std::string_view meaning)
      : member(pointer), info{name, internal::TypeOf<T>(), internal::IsOptional<T>::value, unit, meaning} {}
  T Row::* member;
  ColumnInfo info;
};

// A table, declared once from a plain row struct; everything else (DDL, batches, documentation) follows from
// it.
//
//   struct Thread { Id128 process; int32_t tid; std::string name; };
//   inline constexpr Table kThreads("threads", Key{2}, "One row per …", Field("process", &Thread::process,
//   "", "…"), …);
template <class RowType, class... Ts>
class Table {
 public:
  using Row = RowType;

  constexpr Table(std::string_view name, Key key, std::string_view meaning, Field<RowType, Ts>... fields)
      : name_(name), key_(key), meaning_(meaning), columns_{fields.info...}, members_{fields.member...} {}

  constexpr TableInfo info() const { return {name_, meaning_, key_.columns, columns_}; }
  constexpr std::string_view name() const { return name_; }

  // Calls visit(column index, value) for every column of `row`, in order.
  template <class Visit>
  void ForEachValue(const RowType& row, Visit&& visit) const {
    ForEach(row, visit, std::index_sequence_for<Ts...>{});
  }
  template <class Visit>
  void ForEachValue(RowType& row, Visit&& visit) const {
    ForEach(row, visit, std::index_sequence_for<Ts...>{});
  }

 private:
  template <class AnyRow, class Visit, size_t... I>
  void ForEach(AnyRow& row, Visit& visit, std::index_sequence<I...>) const {
    (visit(I, row.*static_cast<const internal::Element<I, Ts RowType::*>&>(members_).value), ...);
  }

  std::string_view name_;
  Key key_;
  std::string_view meaning_;
  std::array<ColumnInfo, sizeof...(Ts)> columns_;
  internal::Elements<std::index_sequence_for<Ts...>, Ts RowType::*...> members_;
};

}  // namespace gpusonde::model
