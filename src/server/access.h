// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_stamp.h"
#include "base/result.h"
#include "base/time.h"
#include "server/tokens.h"

namespace gpusonde::server {

// Whoever sends a request, by a token.
struct Caller {
  std::string name;  // of the token
  Scope scope = Scope::kRead;
};

// Who may ask a server: the tokens in a file, which is read again when it changes, and sessions of browsers,
// each of which a token began and which end with it. Sessions are kept in memory as hashes. Thread-safe.
class Access {
 public:
  static constexpr int64_t kSessionNs = int64_t{12} * 3600 * kNanosPerSecond;
  // Beyond this, the token's oldest session ends.
  static constexpr size_t kMaxSessionsPerToken = 32;

  // `now` is a monotonic clock. Errors, naming the file: those of OpenRegular and Tokens::Parse.
  static Result<std::shared_ptr<Access>> Open(const std::string& tokens_file,
                                              std::function<int64_t()> now = MonotonicNow);

  // Whose token it is; empty: nobody's. Errors: kUnavailable while the file can't be read or parsed, when
  // nobody has access.
  Result<std::optional<Caller>> OfToken(std::string_view token);

  // Whose session it is, by the secret of its cookie; empty: nobody's, or it has ended. Errors as above.
  Result<std::optional<Caller>> OfSession(std::string_view secret);

  struct SignedIn {
    std::optional<Caller> caller;  // empty: nobody's token
    std::string secret;            // for the session's cookie; empty: the token's scope isn't enough
  };
  // Begins a session for a token of a scope that allows `needed`. Errors as above, and those of MakeToken.
  Result<SignedIn> SignIn(std::string_view token, Scope needed);

  void SignOut(std::string_view secret);

  // Of sessions that have not ended.
  size_t sessions() const;

 private:
  Access(const std::string& file, std::function<int64_t()> now)
      : file_(file), now_(std::move(now)), watched_({file}) {}
  void Read();
  Status Refresh();
  void EndOldest(const TokenHash& token);

  struct Session {
    TokenHash token;
    int64_t begin_ns = 0;
  };

  const std::string file_;
  const std::function<int64_t()> now_;
  mutable std::mutex mutex_;  // guards what follows
  WatchedFiles watched_;
  Result<Tokens> tokens_;
  std::map<TokenHash, Session> sessions_;  // by the hash of their secret
};

}  // namespace gpusonde::server
