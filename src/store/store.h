// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "model/batch.h"
#include "store/name_cache.h"

namespace gpusonde::store {

// A value bound to `?` in a query. Queries are never assembled from untrusted text.
using Parameter = std::variant<int64_t, double, std::string, Id128, std::vector<Id128>>;

// Rows of a query's answer.
// Not thread-safe; must not outlive its Store.
class Rows {
 public:
  virtual ~Rows() = default;

  struct Column {
    std::string name;
    std::string type;  // the database's name of the type, for people: "BIGINT"
  };
  virtual std::span<const Column> columns() const = 0;

  // Moves to the next row; false at the end. Errors: kIo or kInvalidArgument, with the database's message.
  virtual Result<bool> Next() = 0;

  // Values of the current row; the column's type must be convertible without loss, or the value is 0 / empty.
  virtual bool IsNull(size_t column) const = 0;
  virtual int64_t Int64(size_t column) const = 0;
  virtual double Float64(size_t column) const = 0;
  virtual std::string_view Text(size_t column) const = 0;
  virtual Id128 Id(size_t column) const = 0;
  virtual size_t ListSize(size_t column) const = 0;  // 0 if it isn't a list
  virtual std::vector<Id128> IdList(size_t column) const = 0;
  virtual std::vector<int64_t> Int64List(size_t column) const = 0;

  // Any type as a person reads it: ids as 32 hex digits, NULL as "NULL".
  virtual std::string Display(size_t column) const = 0;

  // Any type as a JSON value: whole numbers whole, ids as strings of 32 hex digits, lists as arrays.
  virtual std::string Json(size_t column) const = 0;
};

// A database of the model's tables. Thread-safe: queries run concurrently with each other and with appends,
// and each sees a consistent snapshot.
class Store {
 public:
  virtual ~Store() = default;

  // Adds the batches in one transaction: all of them or none. Columns are matched by name; those the store
  // lacks are ignored, those the batch lacks become null or empty. Rows of keyed tables replace earlier ones.
  // Errors: kCorrupt for an inconsistent batch, kOutOfSpace, kIo.
  virtual Status Append(std::span<const model::Batch> batches) = 0;

  // Runs one SQL statement. Errors: kInvalidArgument with the database's message for invalid SQL.
  virtual Result<std::unique_ptr<Rows>> Query(const std::string& sql,
                                              std::span<const Parameter> parameters = {}) = 0;

  // This store, or a part of it that answers queries about this time alike, and in less time where the store
  // has many days. What lasts for days without being written again (an incident, a warning) may be missing.
  virtual Store& Within(const TimeRange& /*range*/) { return *this; }

  // The time range whose samples are also summed in profile_windows, and the one whose GPU work is also
  // summed in kernel_windows and device_windows; empty for a store without roll-ups.
  virtual TimeRange sample_windows() const { return {}; }
  virtual TimeRange gpu_windows() const { return {}; }

  // Changes whenever the answer to some query may have changed. Constant for a file that nobody writes.
  virtual uint64_t revision() { return 0; }

  // Makes queries that run now, and those that begin before Resume, fail with kUnavailable. Any thread may
  // call them. Stores that aren't read under a time limit do nothing.
  virtual void Interrupt() {}
  virtual void Resume() {}

  // Names that earlier queries read. Implementations of Append invalidate what they replace.
  virtual NameCache& names() { return names_; }

 private:
  NameCache names_;
};

}  // namespace gpusonde::store
