// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "flight_recorder/shared_text.h"

namespace gpusonde::flight_recorder {

class Value;

// Lists and dictionaries are shared between the values that refer to them, as in Python: a dump refers to
// each stack frame from many entries.
struct List {
  std::vector<Value> items;
  size_t depth = 1;      // of the deepest container within, itself included
  bool is_held = false;  // by another container, which knows its depth
};
// Keys are texts. A dictionary of a dump has 25 items, for which a search is faster than a tree.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  size_t depth = 1;
  bool is_held = false;
};

// A value of Python or JSON. The accessors return nothing if it is of another type.
class Value {
 public:
  Value() = default;  // None
  explicit Value(bool value) : value_(value) {}
  explicit Value(int64_t value) : value_(value) {}
  explicit Value(double value) : value_(value) {}
  explicit Value(std::string value) : value_(std::make_shared<const std::string>(std::move(value))) {}
  explicit Value(std::shared_ptr<List> value) : value_(std::move(value)) {}
  explicit Value(std::shared_ptr<Dict> value) : value_(std::move(value)) {}

  std::optional<int64_t> Integer() const;
  std::optional<double> Number() const;  // of an integer, too
  std::optional<bool> Boolean() const;
  const std::string* Text() const;
  SharedText AsText() const;  // of a text; else empty
  List* AsList() const;
  Dict* AsDict() const;
  // The item of a dictionary; the last one if there are several of this key.
  const Value* Find(std::string_view key) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<List>, std::shared_ptr<Dict>>
      value_;
};

// What is read is bounded, as a few bytes can stand for much memory.
inline constexpr size_t kMaxValues = 8'000'000;
inline constexpr size_t kMaxDepth = 64;

// Reads a pickle (protocol 2 to 5) of dictionaries with keys of text, lists, tuples (as lists), text,
// numbers, booleans and None. Nothing else is made: an opcode for an object of a class, or a call, is an
// error, so that a file can run nothing. Errors: kCorrupt with the offset; kUnsupported beyond the limits
// above. Source: Python's Lib/pickletools.py.
Result<Value> ReadPickle(std::string_view bytes);

// Reads JSON into the same values, within the same limits.
Result<Value> ReadJson(std::string_view text);

}  // namespace gpusonde::flight_recorder
