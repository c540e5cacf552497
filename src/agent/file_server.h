// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "symbols/file_protocol.h"
#include "symbols/file_reader.h"

namespace gpusonde::agent {

// Parses a program file in this process and returns the packed result. Errors: kCorrupt; kUnsupported for a
// file that takes too much time or memory to parse.
Result<std::string> ParseFile(symbols::FileRequest& request);

// Options of a reader without a process of its own, for tests.
inline symbols::FileReader::Options ParsedHere() { return {.command = {}, .parse = &ParseFile}; }

// Parses program files for the symbols::FileReader at the other end of `socket` until that closes it. Enters
// a sandbox first (base/sandbox.h): files may be hostile, and are received open. Errors: kIo, kCorrupt.
Status ServeFiles(int socket);

}  // namespace gpusonde::agent
