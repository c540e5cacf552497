// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder/value.h"

#include <ranges>

namespace gpusonde::flight_recorder {
namespace {

template <class T, class V>
std::optional<T> Held(const V& value) {
  const T* held = std::get_if<T>(&value);
  return held == nullptr ? std::nullopt : std::optional(*held);
}

template <class T, class V>
T* Shared(const V& value) {
  const auto* held = std::get_if<std::shared_ptr<T>>(&value);
  return held == nullptr ? nullptr : held->get();
}

}  // namespace

std::optional<int64_t> Value::Integer() const { return Held<int64_t>(value_); }
std::optional<bool> Value::Boolean() const { return Held<bool>(value_); }
std::optional<double> Value::Number() const {
  if (const std::optional<int64_t> integer = Integer()) return static_cast<double>(*integer);
  return Held<double>(value_);
}
const std::string* Value::Text() const { return Shared<const std::string>(value_); }
SharedText Value::AsText() const {
  return SharedText(Held<std::shared_ptr<const std::string>>(value_).value_or(nullptr));
}
List* Value::AsList() const { return Shared<List>(value_); }
Dict* Value::AsDict() const { return Shared<Dict>(value_); }

const Value* Value::Find(std::string_view key) const {
  const Dict* dict = AsDict();
  if (dict == nullptr) return nullptr;
  for (const auto& [name, value] : dict->items | std::views::reverse)
    if (*name.Text() == key) return &value;
  return nullptr;
}

}  // namespace gpusonde::flight_recorder
