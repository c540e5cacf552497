// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "server/http_message.h"

namespace gpusonde::server {

inline constexpr std::string_view kQueryPath = "/api/v1/query";
// Of the body of a POST to it: programs write statements with thousands of ids.
inline constexpr size_t kMaxStatementBytes = size_t{256} << 10;

// Answers POST kQueryPath as `api` answers GET with the body's statement as parameter `sql`: the whole body
// as text/plain, or an object of parameters as application/json. An address has too little room for long
// statements.
HttpHandler AnsweringSqlPosts(HttpHandler api);

}  // namespace gpusonde::server
