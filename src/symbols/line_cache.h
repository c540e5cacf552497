// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "symbols/dwarf_file.h"

namespace gpusonde::symbols {

// Source lines that were found before, kept on disk: one text file per binary in a folder of our own, named
// by the binary's id, which is of its content. It is a cache: what can't be read is forgotten, what can't be
// written is found again next time. Several processes may use one folder. Not thread-safe.
class LineCache {
 public:
  // Lines by offset in the binary's file; frames innermost first.
  using Lines = std::unordered_map<uint64_t, std::vector<SourceFrame>>;

  using Found = std::vector<std::pair<uint64_t, std::vector<SourceFrame>>>;

  // A folder that isn't there is made. The oldest files go where all are more than 64 MiB. An empty path, or
  // one that can't be had, keeps nothing.
  explicit LineCache(std::string folder);

  // What is known of a binary. Nothing after the first record that doesn't parse.
  Lines Load(const Id128& binary) const;

  // Remembers more of a binary, up to 2 MiB of each.
  void Add(const Id128& binary, const Found& found) const;

 private:
  std::string PathOf(const Id128& binary) const;

  std::string folder_;  // empty: nothing is kept
};

}  // namespace gpusonde::symbols
