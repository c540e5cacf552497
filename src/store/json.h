// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpusonde::store {

// UTF-8 text as a JSON string with its quotes (RFC 8259, section 7).
std::string JsonString(std::string_view text);

}  // namespace gpusonde::store
