// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusonde {

// Makes untrusted text (names of processes, threads, kernels and files, command lines) safe to write to a
// terminal, a log or a CSV file. Escapes control characters (C0, DEL, C1 both as UTF-8 and as single bytes),
// invalid UTF-8, line separators, and the marks that reorder text:
// "\x1b", "\x9b", "\u202e".
std::string Printable(std::string_view text);

// The same, but keeps line feeds and tabs.
std::string PrintableLines(std::string_view text);

// Truncates to `max_characters`, the last of which is then "…". A code point counts as one character.
std::string Shorten(std::string_view text, size_t max_characters);

// The number of code points of UTF-8 text.
size_t CountCharacters(std::string_view text);

}  // namespace gpusonde
