// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/fd_passing.h"
#include "base/result.h"

// The messages between a FileReader and the process that reads program files for it, on a SOCK_SEQPACKET
// pair. A message is untrusted on either side.
namespace gpusonde::symbols {

enum class FileRequestKind : uint8_t {
  kSymbols,      // ElfFile::Pack
  kUnwindTable,  // unwind::Pack
  kPython,       // PackPython
};

struct FileRequest {
  FileRequestKind kind{};
  std::string name;  // for messages
  Fd file;
  Fd debug_file;  // with kSymbols; may be invalid
  Fd answer;      // an empty file to which the server writes the answer
};

// Errors: kUnavailable if the socket has no room; kIo.
Status SendFileRequest(int socket, const FileRequest& request, Wait wait);
// Blocks until a request arrives. Returns nullopt if the other side has closed the socket. Errors: kCorrupt
// for a malformed message; kIo.
Result<std::optional<FileRequest>> ReceiveFileRequest(int socket);

// Reports that the answer was written to its file, or why not. Errors: kIo.
Status SendFileAnswer(int socket, const Status& answer);
struct FileAnswer {
  std::optional<Error> error;  // none: the answer is in its file
};
// Doesn't block; returns nullopt if no message is pending. Errors: kIo if the other side has closed the
// socket or sent a malformed message.
Result<std::optional<FileAnswer>> ReceiveFileAnswer(int socket);

}  // namespace gpusonde::symbols
