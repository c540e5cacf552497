// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "symbols/file_protocol.h"
#include "symbols/file_reader.h"

namespace gpusonde::agent {

// The answer to a request, in this process. Errors: kCorrupt, kUnsupported for what takes too much to read.
Result<std::string> ParseFile(symbols::FileRequest& request);

// Who parses program files where no process of its own is wanted.
inline symbols::FileReader::Options ParsedHere() { return {.command = {}, .parse = &ParseFile}; }

// Parses program files for a symbols::FileReader at the other end of the socket, until that closes it. The
// calling process gives up everything else first (base/sandbox.h): files come open, and may be hostile.
// Errors: kIo, kCorrupt.
Status ServeFiles(int socket);

}  // namespace gpusonde::agent
