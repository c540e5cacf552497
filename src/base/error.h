// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusonde {

// The category of an error, a closed set on which callers may branch. Users read Error::message.
enum class ErrorCode : uint8_t {
  kInvalidArgument,   // the caller's request is invalid
  kNotFound,          // a file, process or table doesn't exist
  kPermissionDenied,  // the system denies it; the message names the permission needed
  kUnavailable,       // a required resource is missing or busy (a library, a port, a lock)
  kUnsupported,       // valid, but this program or machine can't do it
  kCorrupt,           // malformed external data; the message says where
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

  // The same error with "context: " before the message, for callers that know the context.
  Error With(std::string_view context) &&;
};

// An error from errno, which determines its code: "open /x: Permission denied".
Error ErrnoError(int error_number, std::string_view what);

}  // namespace gpusonde
