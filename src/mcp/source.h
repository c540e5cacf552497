// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace gpusonde::mcp {

// Where the tools read. Get, Query and Findings are called by one thread at a time.
class Source {
 public:
  virtual ~Source() = default;

  // The body of the API's response (docs/api.md) to GET /api/v1/`target`, such as "flamegraph?type=gpu".
  // Errors: the API's, with its message.
  virtual Result<std::string> Get(const std::string& target) = 0;

  // Whether Query and Findings work.
  virtual bool has_files() const { return false; }

  // Runs one read-only statement: {"columns":[{"name","type"}],"rows":[[…]],"omitted":{"rows":N},
  // "uncounted":""} with the first `max_rows` rows and how many more there are, counted up to
  // kMaxCountedRows (then `uncounted` is "rows").
  virtual Result<std::string> Query(const std::string& sql, int64_t max_rows);
  // The analysis of the files (docs/analyze.md): {"overview":[…],"findings":[…],"advice":[…],"notes":[…]}.
  virtual Result<std::string> Findings();

  // Makes what runs now fail, and what begins before Resume. Call them from any thread. The analysis of
  // files is not interrupted.
  virtual void Interrupt() {}
  virtual void Resume() {}
};

inline constexpr int64_t kMaxCountedRows = 10'000;

// Recordings and traces, opened as `store`, which must outlive the result, with the notices for the user
// about them. `files` are read for Findings.
std::unique_ptr<Source> FilesSource(store::Store& store, std::vector<std::string> files, std::string title,
                                    std::vector<std::string> notices);

// A running server; `get` returns the body of its response to /api/v1/`target`.
std::unique_ptr<Source> ServerSource(std::function<Result<std::string>(const std::string& target)> get);

}  // namespace gpusonde::mcp
