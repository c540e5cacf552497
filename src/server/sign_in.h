// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "server/access.h"
#include "server/http_message.h"

// How a browser exchanges a token for a session, whose secret is in an HttpOnly cookie: pages then hold no
// token, and scripts can't read it.
namespace gpusonde::server {

inline constexpr std::string_view kSessionPath = "/api/v1/session";
inline constexpr std::string_view kSignInPath = "/api/v1/sign-in";
inline constexpr std::string_view kSignOutPath = "/api/v1/sign-out";

// Answers GET kSessionPath with whether browsers have to sign in, and as whom this one has; everything else
// goes to `api`.
HttpHandler AnsweringSession(HttpHandler api, bool needs_sign_in);

// Answers POST kSignInPath with {"token":…}, and POST kSignOutPath; everything else goes to `posts`, if it
// isn't null.
HttpHandler SignInHandler(std::shared_ptr<Access> access, HttpHandler posts);

}  // namespace gpusonde::server
