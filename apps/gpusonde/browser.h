// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpusonde::app {

// Opens the URL in the user's browser if there is a desktop session, standard output is a terminal and the
// user isn't root (a browser must not run as root). Otherwise does nothing. Never waits for the browser.
void OpenInBrowser(const std::string& url);

}  // namespace gpusonde::app
