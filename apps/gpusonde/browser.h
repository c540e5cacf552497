// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpusonde::app {

// Opens the address in the person's browser where there seems to be one: a desktop session, and the program
// started from a terminal by someone other than root, whose browser would run as root. Does nothing
// otherwise; never waits for the browser.
void OpenInBrowser(const std::string& url);

}  // namespace gpusonde::app
