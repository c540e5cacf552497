// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpusonde {

// Text for the content and the quoted attributes of HTML elements: control characters and invalid UTF-8 as
// base/printable.h escapes them, and the five characters that have a meaning in HTML as references.
std::string EscapedHtml(std::string_view text);

// The same of a sentence, in which no line ends between a number and its unit: "5 %", "1.2 ms".
std::string SentenceHtml(std::string_view sentence);

}  // namespace gpusonde
