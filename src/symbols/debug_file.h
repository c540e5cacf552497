// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::symbols {

// Where the debug files of a binary are looked for, and whose files are trusted: a debug file determines the
// names that all users of the binary see.
struct DebugPlaces {
  std::vector<std::string> roots;  // "" is our own
  uint32_t owner = 0;              // files of other users than this one and root are ignored

  // Of the binary `file`, which process `pid` maps from `path`: its root and ours, files of the binary's
  // owner. For system files (symbols/binary_identity.h) our root, files of root.
  static DebugPlaces Of(const Fd& file, const std::string& path, int32_t pid);

  // Opens a regular file of a trusted owner; nullopt for any other.
  std::optional<Fd> Open(const std::string& path) const;
};

// Looks for the file that holds what was stripped from an ELF file (its symbol table and its debug
// information), as distributions package it: by build id under ROOT/usr/lib/debug/.build-id for each root,
// then by the name in .gnu_debuglink beside the file, in .debug beside it, and under /usr/lib/debug. `path`
// is the file's own in those roots; `fd` is the file itself. A candidate must have the same build id, or
// where there is none the checksum that the link asks for. Nothing when there is no such file. Source: GDB's
// manual, "Separate Debug Files".
std::optional<Fd> OpenDebugFile(int fd, const std::string& path, const DebugPlaces& places);

// The file with this build id (hex) under ROOT/usr/lib/debug/.build-id.
std::optional<Fd> OpenByBuildId(const std::string& build_id, const DebugPlaces& places);

}  // namespace gpusonde::symbols
