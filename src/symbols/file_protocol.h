// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

// What a profiler and the process that reads program files for it say to each other: messages on a
// SOCK_SEQPACKET pair.
namespace gpusonde::symbols {

enum class FileQuestion : uint8_t {
  kSymbols,      // ElfFile::Pack
  kUnwindTable,  // unwind::Pack
  kPython,       // PackPython
};

struct FileRequest {
  FileQuestion question{};
  std::string name;  // for messages
  Fd file;
  Fd debug_file;  // with kSymbols; may be invalid
  Fd answer;      // an empty file that takes the answer
};

// `wait`: for room in the socket. Errors: kUnavailable when there is none; kIo.
Status SendFileRequest(int socket, const FileRequest& request, bool wait);
// Nothing when the other side has gone. Errors: kCorrupt for what is no such message; kIo.
Result<std::optional<FileRequest>> ReceiveFileRequest(int socket);

// That the answer is in its file, or why not.
Status SendFileAnswer(int socket, const Status& answer);
struct FileAnswer {
  std::optional<Error> error;  // none: the answer is in its file
};
// Never waits. Nothing when there is no message. Errors: kIo when the other side has gone, or sends no such
// message.
Result<std::optional<FileAnswer>> ReceiveFileAnswer(int socket);

}  // namespace gpusonde::symbols
