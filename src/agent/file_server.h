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

// Whether files are parsed as fast as other programs run, as the first stacks of a recording need it, or only
// where these leave CPU time, for an agent that goes on for months.
enum class FilePriority { kNormal, kBackground };

// Parses program files for the symbols::FileReader at the other end of `socket` until that closes it. Enters
// a sandbox first (base/sandbox.h): files may be hostile, and are received open. Errors: kIo, kCorrupt.
Status ServeFiles(int socket, FilePriority priority);

}  // namespace gpusonde::agent
