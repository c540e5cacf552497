// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium.h>

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace gpusonde::privacy {

// A fixed number of values whose memory is wiped on destruction. Move-only; nothing prints or serialises it.
// Initially zeros. Not thread-safe.
template <class T>
class Wiped {
  static_assert(std::is_trivially_copyable_v<T>, "wiping bytes must be enough");

 public:
  explicit Wiped(size_t count) : values_(std::make_unique<T[]>(count)), count_(count) {}
  Wiped(Wiped&& other) noexcept : values_(std::move(other.values_)), count_(std::exchange(other.count_, 0)) {}
  Wiped& operator=(Wiped&& other) noexcept {
    std::swap(values_, other.values_);
    std::swap(count_, other.count_);
    return *this;
  }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  ~Wiped() {
    if (values_ != nullptr) sodium_memzero(values_.get(), count_ * sizeof(T));
  }

  std::span<T> values() { return {values_.get(), count_}; }
  std::span<const T> values() const { return {values_.get(), count_}; }

 private:
  std::unique_ptr<T[]> values_;
  size_t count_;
};

}  // namespace gpusonde::privacy
