// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/http_message.h"

namespace gpusonde::server {

// The folders of the UI in search order: the value of the environment variable GPUSONDE_WEB, which excludes
// the others; ../share/gpusonde/web beside the program's folder, if installed; web/dist of the source tree.
std::vector<std::string> UiFolders();

// Serves the UI of the first of these folders that has one (an index.html); if none has, a page that says so
// and what to do.
HttpHandler UiHandler(const std::vector<std::string>& folders);

}  // namespace gpusonde::server
