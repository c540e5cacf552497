// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "model/profile.h"

namespace gpusonde::server {

// The functions of a profile, identified by name and binary, not by address, so that all calls of `malloc` in
// libc.so.6 are one function. Without a binary (Python), the file takes its place; frames of different kinds
// are always different. A frame without a symbol is a function named as by model::FrameName(). Merged
// functions have the first file and line in sort order.
//
// Refers to the profile's texts and must not outlive it. Immutable once built.
class FrameFunctions {
 public:
  struct Function {
    std::string_view name;
    int32_t binary = -1;  // into binaries()
    model::FrameKind kind = model::FrameKind::kUnknown;
    std::string_view file;  // empty when unknown
    int32_t line = 0;       // 0 when unknown
  };

  explicit FrameFunctions(const model::Profile& profile);

  // Sorted by name, then binary, kind and file, so that the order doesn't depend on the profile's rows.
  const std::vector<Function>& functions() const { return functions_; }
  // Unique, sorted by name, path and build id.
  const std::vector<model::Profile::Binary>& binaries() const { return binaries_; }

  // The functions at a location, an inlined function after its caller, as indices into functions(). Never
  // empty. -1 is an unknown location, named "[unknown]".
  std::span<const int32_t> At(int32_t location) const {
    const size_t i = static_cast<size_t>(int64_t{location} + 1);
    return std::span(frames_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  // The identity of a function: name, binary, kind, and the file if there is no binary.
  using Identity = std::tuple<std::string_view, int32_t, model::FrameKind, std::string_view>;
  struct IdentityHash {
    size_t operator()(const Identity& identity) const noexcept;
  };
  static Identity IdentityOf(const Function& function);

  // Orders the binaries and gives each of the profile's its index in binaries_.
  std::vector<int32_t> OrderBinaries(const model::Profile& profile);
  void AddFrame(const model::Profile& profile, int32_t location, size_t line, int32_t binary);
  void OrderFunctions();

  std::vector<model::Profile::Binary> binaries_;
  std::vector<Function> functions_;
  std::unordered_map<Identity, int32_t, IdentityHash> index_;
  std::vector<int32_t> frames_;    // of all locations, one after the other
  std::vector<size_t> first_;      // where each location's begin; [0] is that of location -1
  std::deque<std::string> names_;  // of frames without a symbol
};

}  // namespace gpusonde::server
