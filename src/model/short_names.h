// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusonde::model {

// Shortens names for a line of text: escaped as in base/printable.h, at most `width` bytes and a few for
// ellipses. A longer name of C++ first loses what tells little (CondensedName), if that leaves it different
// from the others. If it still is too long, it keeps its beginning and end or, if others begin alike
// (instances of one template differ in the middle), its beginning and the parts that distinguish them.
// Thread-safe.
class ShortNames {
 public:
  static constexpr size_t kWidth = 70;

  // The names that are shown together. They must outlive this object.
  explicit ShortNames(const std::vector<std::string_view>& names, size_t width = kWidth);
  // One of those names, shortened; any other name is not distinguished from them.
  std::string operator()(std::string_view name) const;

 private:
  struct Shown {
    std::string text;
    std::vector<size_t> differences;  // where they are, at most two
  };
  std::string Shorten(const Shown& shown) const;

  size_t width_;
  std::unordered_map<std::string_view, Shown> shown_;
};

// The demangled name of a kernel without the return type, parameters, namespaces and types of constants:
// "elementwise_kernel<128, AddFunctor<Half>>" for
// "void at::native::elementwise_kernel<(int)128, at::native::AddFunctor<c10::Half> >(int, T3)".
std::string CondensedName(std::string_view name);

}  // namespace gpusonde::model
