// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusonde {

// The columns of a terminal that printable text (base/printable.h) takes: two for East Asian wide characters
// and emoji, none for combining marks. Where terminals disagree, the wider answer, so that a line never
// overflows.
size_t DisplayWidth(std::string_view text);

// Truncates printable text to `columns`; if it is cut it ends with "…".
std::string CutToWidth(std::string_view text, size_t columns);

}  // namespace gpusonde
