// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "importers/kineto/splitter.h"

namespace gpusonde::importers::kineto {

// Joins events that are given as two, a begin (ph B) and an end (E), into one (X). Those of a thread nest and
// are in order of time (Trace Event Format, "Duration Events"), so an end is that of the thread's last begin;
// it may be chunks later. Begins without an end, and ends without a begin, stay as they are. Not thread-safe.
class PairJoiner {
 public:
  PairJoiner();
  ~PairJoiner();

  // Whether a text seems to have begins. Writers use them throughout or never.
  static bool MayHavePairs(std::string_view text);
  // Joins a chunk: a begin whose end isn't there yet is left out and kept for later.
  void Join(EventSplitter::Chunk& chunk);
  // Makes a chunk of begins whose end never came; false if there are none.
  bool Finish(EventSplitter::Chunk& chunk);

 private:
  // Of open begins; more stay as they are.
  static constexpr size_t kMaxOpenBytes = size_t{16} << 20;

  struct Members;
  struct Begin {
    std::string text;
    int64_t start_ns = 0;
    bool has_arguments = false;
  };
  using Thread = std::pair<std::string, std::string>;  // pid and tid, as written

  void Add(std::string_view event);
  void Append(std::string_view event);
  bool Read(std::string_view event, Members& members);

  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::map<Thread, std::vector<Begin>> open_;
  size_t open_bytes_ = 0;
  std::string joined_;
  std::vector<uint32_t> ends_;
};

}  // namespace gpusonde::importers::kineto
