// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "flight_recorder/value.h"

namespace gpusonde::flight_recorder {
namespace {

// Makes values of the events of nlohmann's parser, which itself uses memory only for the nesting.
class ValueBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add(Value(value)); }
  bool number_integer(number_integer_t value) override { return Add(Value(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(value > static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max())
                   ? Value(static_cast<double>(value))
                   : Value(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return Add(Value(value)); }
  bool string(string_t& value) override { return Add(Value(std::move(value))); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(size_t /*size*/) override { return Open(Value(std::make_shared<Dict>())); }
  bool key(string_t& name) override {
    keys_.back() = std::move(name);
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t /*size*/) override { return Open(Value(std::make_shared<List>())); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string& /*token*/, const nlohmann::json::exception&) override {
    error = {ErrorCode::kCorrupt, fmt::format("not JSON at byte {}", position)};
    return false;
  }

  // The value, or why there is none.
  Value root;
  std::optional<Error> error;

 private:
  bool Add(Value value) {
    if (++values_ > kMaxValues) {
      error = {ErrorCode::kUnsupported, fmt::format("more than {} values", kMaxValues)};
      return false;
    }
    if (open_.empty())
      root = std::move(value);
    else if (List* list = open_.back().AsList())
      list->items.push_back(std::move(value));
    else
      open_.back().AsDict()->items.emplace_back(Value(std::exchange(keys_.back(), {})), std::move(value));
    return true;
  }
  bool Open(const Value& container) {
    if (open_.size() == kMaxDepth) {
      error = {ErrorCode::kUnsupported,
               fmt::format("containers within containers, more than {} deep", kMaxDepth)};
      return false;
    }
    if (!Add(container)) return false;
    open_.push_back(container);
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  size_t values_ = 0;
  std::vector<Value> open_;
  std::vector<std::string> keys_;  // of the open containers: the key of the next item
};

}  // namespace

Result<Value> ReadJson(std::string_view text) {
  ValueBuilder builder;
  if (!nlohmann::json::sax_parse(text, &builder))
    return std::unexpected(builder.error.value_or(Error{ErrorCode::kCorrupt, "not JSON"}));
  return std::move(builder.root);
}

}  // namespace gpusonde::flight_recorder
