// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <utility>

#include "base/error.h"

namespace gpusonde {

// A value or an error. Every fallible function of gpusonde returns one; exceptions of libraries are caught in
// the file that calls the library.
template <class T>
using Result = std::expected<T, Error>;

// The result of a fallible function without a value.
using Status = Result<void>;

// Shorthand for returning a failure: return Fail(ErrorCode::kNotFound, "no process 411").
inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}
inline std::unexpected<Error> Fail(Error error) { return std::unexpected(std::move(error)); }

}  // namespace gpusonde

#define GPUSONDE_CONCAT_INNER(a, b) a##b
#define GPUSONDE_CONCAT(a, b) GPUSONDE_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expression` (a Status or any Result) failed.
#define TRY(expression)                                          \
  do {                                                           \
    if (auto try_result = (expression); !try_result.has_value()) \
      return std::unexpected(std::move(try_result).error());     \
  } while (false)

// `ASSIGN_OR_RETURN(Fd fd, OpenForReading(path));`: declares or assigns the value, or returns the failure.
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_INNER(GPUSONDE_CONCAT(assign_result_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_INNER(temporary, target, expression)                       \
  auto temporary = (expression);                                                    \
  if (!temporary.has_value()) return std::unexpected(std::move(temporary).error()); \
  target = std::move(temporary).value()
