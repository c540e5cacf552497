// SPDX-License-Identifier: Apache-2.0
#include "server/tokens.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <set>

#include "base/ascii.h"
#include "base/text.h"

namespace gpusonde::server {
namespace {

constexpr std::string_view kTokenPrefix = "gps_";  // by which people and scanners recognise one
constexpr std::string_view kHashPrefix = "sha256:";

std::optional<TokenHash> ParseHash(std::string_view text) {
  TokenHash hash{};
  if (!text.starts_with(kHashPrefix) || text.size() != kHashPrefix.size() + 2 * hash.size())
    return std::nullopt;
  text.remove_prefix(kHashPrefix.size());
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (size_t i = 0; i < hash.size(); ++i) {
    const size_t high = kDigits.find(text[2 * i]), low = kDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    hash[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return hash;
}

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (size_t at = 0; (at = line.find_first_not_of(kBlank, at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

Result<Token> ParseToken(const std::vector<std::string_view>& words) {
  // The line isn't repeated: it may be a token itself.
  if (words.size() != 3)
    return Fail(ErrorCode::kInvalidArgument,
                "is not 'NAME SCOPE sha256:HEX'; `gpusonde token new` writes such lines");
  TRY(CheckTokenName(words[0]));
  const std::optional<Scope> scope = ParseScope(words[1]);
  if (!scope.has_value())
    return Fail(ErrorCode::kInvalidArgument, "has an unknown scope; use ingest, metrics, read or admin");
  const std::optional<TokenHash> hash = ParseHash(words[2]);
  if (!hash.has_value())
    return Fail(ErrorCode::kInvalidArgument, "has no hash of the form sha256: and 64 hex digits");
  return Token{.name = std::string(words[0]), .scope = *scope, .hash = *hash};
}

}  // namespace

std::string_view Name(Scope scope) { return kScopeNames.at(static_cast<size_t>(scope)); }

std::optional<Scope> ParseScope(std::string_view name) {
  const auto* const found = std::ranges::find(kScopeNames, name);
  if (found == kScopeNames.end()) return std::nullopt;
  return static_cast<Scope>(found - kScopeNames.begin());
}

bool Allows(Scope has, Scope needed) {
  return has == needed || has == Scope::kAdmin || (has == Scope::kRead && needed == Scope::kMetrics);
}

TokenHash HashOf(std::string_view token) {
  TokenHash hash{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

Result<std::string> MakeToken() {
  TokenHash random{};
  if (RAND_bytes(random.data(), random.size()) != 1)
    return Fail(ErrorCode::kUnavailable, "OpenSSL can't generate random numbers");
  return std::string(kTokenPrefix) + ToHex(random);
}

Status CheckTokenName(std::string_view name) {
  constexpr size_t kMaxBytes = 64;
  const bool plain = std::ranges::all_of(
      name, [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
  if (plain && !name.empty() && name.size() <= kMaxBytes) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("has an invalid name; use 1 to {} letters, digits, '.', '_' and '-'", kMaxBytes));
}

std::string Token::ToLine() const {
  return fmt::format("{} {} {}{}", name, Name(scope), kHashPrefix, ToHex(hash));
}

Result<Tokens> Tokens::Parse(std::string_view text) {
  if (text.size() > kMaxBytes)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("the file has more than {} bytes; delete the lines of revoked tokens, which begin "
                    "with #",
                    kMaxBytes));
  Tokens tokens;
  std::set<std::string> names;
  std::set<TokenHash> hashes;
  for (int number = 1; !text.empty(); ++number) {
    const std::vector<std::string_view> words = WordsOf(TakeLine(text));
    if (words.empty() || words.front().starts_with('#')) continue;
    const auto fail = [number](std::string_view why) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("line {} {}", number, why));
    };
    Result<Token> token = ParseToken(words);
    if (!token.has_value()) return fail(token.error().message);
    if (!names.insert(token->name).second) return fail("has the name of another line");
    if (!hashes.insert(token->hash).second) return fail("has the token of another line");
    if (tokens.all_.size() >= kMaxTokens) return fail(fmt::format("is beyond {} tokens", kMaxTokens));
    tokens.all_.push_back(*std::move(token));
  }
  return tokens;
}

const Token* Tokens::Find(const TokenHash& hash) const {
  const Token* found = nullptr;
  for (const Token& token : all_)
    if (CRYPTO_memcmp(token.hash.data(), hash.data(), hash.size()) == 0) found = &token;
  return found;
}

}  // namespace gpusonde::server
