// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusonde {

// Text that comes from strangers (names of processes, threads, kernels and files, command lines), safe to
// write to a terminal, a log or a CSV file: what a terminal would act on is escaped. That is control
// characters (C0, DEL, C1 both as UTF-8 and as single bytes), bytes that are not UTF-8, line separators, and
// the marks that reorder text:
// "\x1b", "\x9b", "\u202e".
std::string Printable(std::string_view text);

// The same for text of several lines: keeps line feeds and tabs.
std::string PrintableLines(std::string_view text);

// At most `max_characters` of it, the last of which is then "…". A code point counts as one character.
std::string Shorten(std::string_view text, size_t max_characters);

// How many characters UTF-8 text shows, each code point taken for one.
size_t CountCharacters(std::string_view text);

}  // namespace gpusonde
