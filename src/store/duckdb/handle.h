// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace gpusonde::store::duckdb {

// Owns one object of DuckDB's C API, which are all destroyed through a pointer to them.
template <class T>
class Handle {
 public:
  using Destroy = void (*)(T*);

  Handle() = default;
  Handle(Destroy destroy, T value) : destroy_(destroy), value_(value) {}
  explicit Handle(Destroy destroy) : destroy_(destroy) {}
  Handle(Handle&& other) noexcept
      : destroy_(std::exchange(other.destroy_, nullptr)), value_(std::exchange(other.value_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      Reset();
      destroy_ = std::exchange(other.destroy_, nullptr);
      value_ = std::exchange(other.value_, T{});
    }
    return *this;
  }
  ~Handle() { Reset(); }

  T get() const { return value_; }
  // Where the C API stores or reads the object.
  T* out() { return &value_; }

  void Reset() {
    if (destroy_ != nullptr) destroy_(&value_);
    value_ = T{};
  }

 private:
  Destroy destroy_ = nullptr;
  T value_{};
};

}  // namespace gpusonde::store::duckdb
