// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace gpusonde {

std::string_view Name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kPermissionDenied:
      return "permission_denied";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kTooNew:
      return "too_new";
    case ErrorCode::kOutOfSpace:
      return "out_of_space";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

Error Error::With(std::string_view context) && {
  message.insert(0, ": ").insert(0, context);
  return std::move(*this);
}

Error ErrnoError(int error_number, std::string_view what) {
  ErrorCode code = ErrorCode::kIo;
  switch (error_number) {
    case ENOENT:
    case ESRCH:
    case ENOTDIR:
      code = ErrorCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = ErrorCode::kPermissionDenied;
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      code = ErrorCode::kOutOfSpace;
      break;
    case EINVAL:
    case EISDIR:
      code = ErrorCode::kInvalidArgument;
      break;
    case EADDRINUSE:
    case EBUSY:
    case EAGAIN:
    case ENOMEM:
      code = ErrorCode::kUnavailable;
      break;
    default:
      break;
  }
  return Error{code, std::string(what) + ": " + std::strerror(error_number)};
}

}  // namespace gpusonde
