// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusonde {

// What went wrong, as a closed set that callers may branch on. What a person reads is Error::message.
enum class ErrorCode : uint8_t {
  kInvalidArgument,   // the caller asked for something that makes no sense
  kNotFound,          // a file, process or table that isn't there
  kPermissionDenied,  // the machine refuses; the message says what would allow it
  kUnavailable,       // something needed is missing or busy now (a library, a port, a lock)
  kUnsupported,       // valid, but not something this program or machine can do
  kCorrupt,           // data from outside that doesn't parse; the message says where
  kTooNew,            // written by a newer gpusonde
  kOutOfSpace,        // disk full or quota reached
  kIo,                // any other failure of the operating system
  kInternal,          // a bug
};

// Stable lower-case name, as used in JSON: "invalid_argument".
std::string_view Name(ErrorCode code);

// One failure. The message says what, where, and what to do about it, in a sentence without a final stop.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // The same error with "context: " before the message, for the caller who knows more about where.
  Error With(std::string_view context) &&;
};

// An error from errno, its code chosen by the value: "open /x: Permission denied".
Error ErrnoError(int error_number, std::string_view what);

}  // namespace gpusonde
