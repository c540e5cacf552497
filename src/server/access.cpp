// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/regular_file.h"

namespace gpusonde::server {
namespace {

Result<Tokens> ReadTokens(const std::string& path) {
  ASSIGN_OR_RETURN(const Fd file, OpenRegular(path));
  ASSIGN_OR_RETURN(const std::string text, ReadRegular(file, Tokens::kMaxBytes + 1));
  Result<Tokens> tokens = Tokens::Parse(text);
  if (!tokens.has_value())
    return Fail(tokens.error().code, fmt::format("{}: {}", path, tokens.error().message));
  return tokens;
}

Caller CallerOf(const Token& token) { return {.name = token.name, .scope = token.scope}; }

}  // namespace

Result<std::shared_ptr<Access>> Access::Open(const std::string& tokens_file, std::function<int64_t()> now) {
  std::shared_ptr<Access> access(new Access(tokens_file, std::move(now)));
  const std::lock_guard lock(access->mutex_);
  access->Read();
  if (!access->tokens_.has_value()) {
    Error error = access->tokens_.error();
    if (error.code == ErrorCode::kNotFound)
      error.message += fmt::format("; `gpusonde token new --tokens {}` makes it", access->file_);
    return Fail(std::move(error));
  }
  if (access->tokens_->all().empty())
    LogWarn("{} has no tokens yet, so nobody has access; `gpusonde token new` adds one", access->file_);
  return access;
}

void Access::Read() {
  watched_.MarkRead();
  tokens_ = ReadTokens(file_);
  if (!tokens_.has_value()) return;
  std::erase_if(sessions_,
                [this](const auto& entry) { return tokens_->Find(entry.second.token) == nullptr; });
}

Status Access::Refresh() {
  const WatchedFiles::State state = watched_.Check();
  const bool changed = state == WatchedFiles::State::kChanged;
  if (state != WatchedFiles::State::kSame) Read();
  if (!tokens_.has_value()) {
    if (changed) LogError("nobody has access until the tokens can be read: {}", tokens_.error().message);
    return Fail(ErrorCode::kUnavailable, "this server can't read its tokens; its log says why");
  }
  if (changed) LogInfo("read {} tokens from {}", tokens_->all().size(), file_);
  return {};
}

Result<std::optional<Caller>> Access::OfToken(std::string_view token) {
  const std::lock_guard lock(mutex_);
  TRY(Refresh());
  const Token* const found = tokens_->Find(HashOf(token));
  return found == nullptr ? std::optional<Caller>() : CallerOf(*found);
}

Result<std::optional<Caller>> Access::OfSession(std::string_view secret) {
  const std::lock_guard lock(mutex_);
  TRY(Refresh());
  const auto session = sessions_.find(HashOf(secret));
  if (session == sessions_.end()) return std::optional<Caller>();
  const Token* const token = tokens_->Find(session->second.token);
  if (token == nullptr || now_() - session->second.begin_ns >= kSessionNs) {
    sessions_.erase(session);
    return std::optional<Caller>();
  }
  return CallerOf(*token);
}

Result<Access::SignedIn> Access::SignIn(std::string_view token, Scope needed) {
  const std::lock_guard lock(mutex_);
  TRY(Refresh());
  const TokenHash hash = HashOf(token);
  const Token* const found = tokens_->Find(hash);
  if (found == nullptr) return SignedIn{};
  const Caller caller = CallerOf(*found);
  if (!Allows(caller.scope, needed)) return SignedIn{.caller = caller, .secret = {}};
  ASSIGN_OR_RETURN(std::string secret, MakeToken());
  const int64_t now_ns = now_();
  std::erase_if(sessions_,
                [now_ns](const auto& entry) { return now_ns - entry.second.begin_ns >= kSessionNs; });
  EndOldest(hash);
  sessions_[HashOf(secret)] = {.token = hash, .begin_ns = now_ns};
  return SignedIn{.caller = caller, .secret = std::move(secret)};
}

// Makes room for one more session of the token.
void Access::EndOldest(const TokenHash& token) {
  const auto is_its = [&token](const auto& entry) { return entry.second.token == token; };
  if (static_cast<size_t>(std::ranges::count_if(sessions_, is_its)) < kMaxSessionsPerToken) return;
  auto oldest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it)
    if (is_its(*it) && (oldest == sessions_.end() || it->second.begin_ns < oldest->second.begin_ns))
      oldest = it;
  sessions_.erase(oldest);
}

void Access::SignOut(std::string_view secret) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(HashOf(secret));
}

size_t Access::sessions() const {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = now_();
  return static_cast<size_t>(std::ranges::count_if(
      sessions_, [now_ns](const auto& entry) { return now_ns - entry.second.begin_ns < kSessionNs; }));
}

}  // namespace gpusonde::server
