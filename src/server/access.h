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

// The sender of a request, as identified by its token.
struct Caller {
  std::string name;  // of the token
  Scope scope = Scope::kRead;
};

// Controls who may send requests to a server: holders of the tokens in a file, which is read again when it
// changes, and browsers with a session, which a token begins and which ends with that token. Sessions are
// kept in memory, as hashes. Thread-safe.
class Access {
 public:
  static constexpr int64_t kSessionNs = int64_t{12} * 3600 * kNanosPerSecond;
  // Beyond this, the token's oldest session ends.
  static constexpr size_t kMaxSessionsPerToken = 32;

  // `now` is a monotonic clock. Errors, naming the file: those of OpenRegular and Tokens::Parse.
  static Result<std::shared_ptr<Access>> Open(const std::string& tokens_file,
                                              std::function<int64_t()> now = MonotonicNow);

  // Returns the caller that has this token; nullopt for an unknown token. Errors: kUnavailable while the file
  // can't be read or parsed; no caller has access then.
  Result<std::optional<Caller>> OfToken(std::string_view token);

  // Returns the caller that has this session, by the secret of its cookie; nullopt if the session is unknown
  // or has ended. Errors: as OfToken.
  Result<std::optional<Caller>> OfSession(std::string_view secret);

  struct SignedIn {
    std::optional<Caller> caller;  // nullopt: the token is unknown
    std::string secret;            // for the session's cookie; empty: the token's scope isn't enough
  };
  // Begins a session for a token whose scope allows `needed`. Errors: as OfToken, and those of MakeToken.
  Result<SignedIn> SignIn(std::string_view token, Scope needed);

  void SignOut(std::string_view secret);

  // The number of sessions that have not ended.
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
