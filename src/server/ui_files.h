// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/http_message.h"

namespace gpusonde::server {

// Where the UI may lie, in the order in which it is looked for: the folder that the environment variable
// GPUSONDE_WEB names, alone where it is set; ../share/gpusonde/web beside the program's folder, where it is
// installed; web/dist of the tree that the program was built in.
std::vector<std::string> UiFolders();

// Answers with the UI of the first of these folders that has one (an index.html). Where none has, with one
// page that says so and what to do.
HttpHandler UiHandler(const std::vector<std::string>& folders);

}  // namespace gpusonde::server
