// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpusonde::store::duckdb {

// Whether the text is UTF-8 as DuckDB wants it: no overlong forms, no surrogates, nothing above U+10FFFF
// (RFC 3629).
bool IsUtf8(std::string_view text);

// The text with U+FFFD for every byte that no character can hold. Names and command lines of other people's
// programs are any bytes.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace gpusonde::store::duckdb
