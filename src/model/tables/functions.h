// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per function that a location names.
struct Function {
  Id128 function;
  std::string name;
  std::string system_name;
  std::optional<std::string> file;
  std::optional<int32_t> line;
};

inline constexpr Table kFunctions("functions", Key{1}, "One row per function that a location names",
                                  Field("function", &Function::function, "",
                                        "hash of binary or file, system name and first line"),
                                  Field("name", &Function::name, "", "qualified, demangled name"),
                                  Field("system_name", &Function::system_name, "",
                                        "name as in the symbol table"),
                                  Field("file", &Function::file, "", "source file; null when unknown"),
                                  Field("line", &Function::line, "", "first line; null when unknown"));

}  // namespace gpusonde::model
