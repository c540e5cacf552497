// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::spool {

// Whether `name` can name a host at a server, where it is a folder's name and part of addresses: 1 to 64
// letters, digits, '.', '_' and '-', beginning with a letter or digit. Errors: kInvalidArgument.
Status CheckHostName(std::string_view name);

}  // namespace gpusonde::spool
