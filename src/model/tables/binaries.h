// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per executable file that code ran from.
struct Binary {
  Id128 binary;
  std::string build_id;
  std::string path;
  std::string name;
};

inline constexpr Table kBinaries(
    "binaries", Key{1}, "One row per executable file that code ran from",
    Field("binary_id", &Binary::binary, "",
          "hash of the build id, or of device, inode, size and times if it has none"),
    Field("build_id", &Binary::build_id, "", "GNU build id in hex, empty if it has none"),
    Field("path", &Binary::path, "", "where it was mapped from, in the mount namespace of the process"),
    Field("name", &Binary::name, "", "last part of the path"));

}  // namespace gpusonde::model
