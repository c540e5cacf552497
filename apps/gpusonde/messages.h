// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/error.h"

namespace gpusonde::app {

// Says on standard error what failed: "gpusonde COMMAND: …", several lines if the message has them, fitted to
// a terminal. Names in it are escaped.
void PrintError(std::string_view command, const Error& error);

// The same for what is no failure.
void PrintNotice(std::string_view command, std::string_view message);

// Prints text whose lines begin with a label, ten characters wide, to standard error.
void PrintLabelled(std::string_view text);

}  // namespace gpusonde::app
