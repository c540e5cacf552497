// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::symbols {

// Looks for the file that holds what was stripped from an ELF file (its symbol table and its debug
// information), as distributions package it: by build id under ROOT/usr/lib/debug/.build-id for each of
// `roots` ("" is our own root), then by the name in .gnu_debuglink beside the file, in .debug beside it, and
// under /usr/lib/debug. `path` is the file's own in those roots; `fd` is the file itself. A candidate must
// have the same build id, or where there is none the checksum that the link asks for. Nothing when there is
// no such file. Source: GDB's manual, "Separate Debug Files".
std::optional<Fd> OpenDebugFile(int fd, const std::string& path, std::span<const std::string> roots);

// The file with this build id (hex) under ROOT/usr/lib/debug/.build-id.
std::optional<Fd> OpenByBuildId(const std::string& build_id, std::span<const std::string> roots);

}  // namespace gpusonde::symbols
