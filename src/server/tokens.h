// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpusonde::server {

// What a token is for.
enum class Scope : uint8_t {
  kIngest,   // agents: POST frames, and nothing else
  kMetrics,  // scrapers: GET /metrics, and nothing else
  kRead,     // whatever is shown, /metrics too
  kAdmin,    // everything
};
inline constexpr std::array<std::string_view, 4> kScopeNames = {"ingest", "metrics", "read", "admin"};
std::string_view Name(Scope scope);
std::optional<Scope> ParseScope(std::string_view name);

// Whether a token of scope `has` may do what needs `needed`.
bool Allows(Scope has, Scope needed);

using TokenHash = std::array<unsigned char, 32>;

// SHA-256, which is enough for tokens of 256 random bits, as MakeToken makes them.
TokenHash HashOf(std::string_view token);

// A new token: "gps_" and 64 hex digits. Errors: kUnavailable without random numbers.
Result<std::string> MakeToken();

// Errors: kInvalidArgument, beginning with "has", for a name that Token::name doesn't allow.
Status CheckTokenName(std::string_view name);

// A token as its server knows it.
struct Token {
  std::string name;  // of its holder: 1 to 64 letters, digits, '.', '_' and '-'
  Scope scope = Scope::kRead;
  TokenHash hash{};

  // "NAME SCOPE sha256:HEX", a line of a file of tokens.
  std::string ToLine() const;
};

// The tokens of a server. Thread-safe.
class Tokens {
 public:
  // Parses the lines of a file; empty ones and those that begin with # are skipped. Errors: kInvalidArgument
  // with the line's number, also for two tokens of one name or hash, and beyond kMaxTokens or kMaxBytes.
  static Result<Tokens> Parse(std::string_view text);

  // In time that doesn't depend on which token has the hash. Null: none.
  const Token* Find(const TokenHash& hash) const;

  const std::vector<Token>& all() const { return all_; }

  static constexpr size_t kMaxTokens = 10'000;
  // kMaxTokens lines of the longest. Those of revoked tokens count.
  static constexpr size_t kMaxBytes = kMaxTokens * 160;

 private:
  std::vector<Token> all_;
};

}  // namespace gpusonde::server
