// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/regular_file.h"
#include "messages.h"
#include "server/tokens.h"
#include "values.h"

namespace gpusonde::app {
namespace {

// Readable for all, whatever the umask: servers run as users of their own, and a token can't be made from its
// hash.
constexpr mode_t kMode = 0644;

struct TokenFlags {
  std::string file = "tokens";
  std::string name;
  std::string scope = "read";
};

// A file of tokens while it is changed: two commands at once wait for each other.
struct TokensFile {
  Fd fd;
  std::string text;
  server::Tokens tokens;
};

Result<TokensFile> OpenTokens(const std::string& path, int flags) {
  TokensFile file;
  const bool is_new = (flags & O_CREAT) != 0 && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT;
  Result<Fd> opened = Open(path, flags | O_NONBLOCK | O_NOCTTY, kMode);
  if (!opened.has_value() && opened.error().code == ErrorCode::kNotFound)
    opened.error().message +=
        (flags & O_CREAT) != 0 ? "; make its folder first" : "; `gpusonde token new` makes it";
  ASSIGN_OR_RETURN(file.fd, std::move(opened));
  struct stat status{};
  if (::fstat(file.fd.get(), &status) != 0) return Fail(ErrnoError(errno, "stat " + path));
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kUnsupported, path + " is not a regular file");
  if (is_new && ::fchmod(file.fd.get(), kMode) != 0)
    return Fail(ErrnoError(errno, "change the mode of " + path));
  if (::flock(file.fd.get(), LOCK_EX) != 0) return Fail(ErrnoError(errno, "lock " + path));
  ASSIGN_OR_RETURN(file.text, ReadRegular(file.fd, server::Tokens::kMaxBytes + 1));
  Result<server::Tokens> tokens = server::Tokens::Parse(file.text);
  if (!tokens.has_value())
    return Fail(tokens.error().code, fmt::format("{}: {}", path, tokens.error().message));
  file.tokens = *std::move(tokens);
  return file;
}

Status New(const TokenFlags& flags) {
  if (const Status named = server::CheckTokenName(flags.name); !named.has_value())
    return Fail(ErrorCode::kInvalidArgument, "the token " + named.error().message);
  ASSIGN_OR_RETURN(const TokensFile file, OpenTokens(flags.file, O_RDWR | O_CREAT));
  if (std::ranges::find(file.tokens.all(), flags.name, &server::Token::name) != file.tokens.all().end())
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} has a token of that name already; revoke it, or choose another name", flags.file));
  ASSIGN_OR_RETURN(const std::string token, server::MakeToken());
  const server::Token made{
      .name = flags.name, .scope = *server::ParseScope(flags.scope), .hash = server::HashOf(token)};
  const bool cut = !file.text.empty() && !file.text.ends_with('\n');
  const std::string line = fmt::format("{}{}\n", cut ? "\n" : "", made.ToLine());
  // Servers that can't read the file any more would let nobody in.
  if (const auto with_it = server::Tokens::Parse(fmt::format("{}{}", file.text, line)); !with_it.has_value())
    return Fail(with_it.error().code,
                fmt::format("{} is full: with one more token {}", flags.file, with_it.error().message));
  const off_t end = ::lseek(file.fd.get(), 0, SEEK_END);
  if (end < 0) return Fail(ErrnoError(errno, "write " + flags.file));
  Status written = WriteAll(file.fd.get(), std::as_bytes(std::span(line)));
  if (written.has_value() && ::fsync(file.fd.get()) != 0) written = Fail(ErrnoError(errno, "write"));
  if (!written.has_value()) {
    // With a part of a line, as on a full disk, servers would let nobody in.
    static_cast<void>(::ftruncate(file.fd.get(), end));
    return Fail(std::move(written).error().With(flags.file));
  }
  if (::isatty(STDOUT_FILENO) != 0)
    PrintTo(stderr, "The token of '{}', of scope {}; it is not shown again:\n", flags.name, flags.scope);
  PrintTo(stdout, "{}\n", token);
  return {};
}

Status Revoke(const TokenFlags& flags) {
  ASSIGN_OR_RETURN(const TokensFile file, OpenTokens(flags.file, O_RDWR));
  // The line becomes a comment, by one byte: a server that reads meanwhile sees all other tokens, and the
  // file's owner and mode stay.
  for (size_t begin = 0; begin < file.text.size();) {
    const size_t end = std::min(file.text.find('\n', begin), file.text.size());
    const auto line = server::Tokens::Parse(std::string_view(file.text).substr(begin, end - begin));
    if (line.has_value() && !line->all().empty() && line->all().front().name == flags.name) {
      if (::pwrite(file.fd.get(), "#", 1, static_cast<off_t>(begin)) != 1 || ::fsync(file.fd.get()) != 0)
        return Fail(ErrnoError(errno, "write " + flags.file));
      PrintTo(stdout, "revoked '{}'; servers that use {} refuse it from now on\n", flags.name, flags.file);
      return {};
    }
    begin = end + 1;
  }
  return Fail(ErrorCode::kNotFound, fmt::format("{} has no token '{}'", flags.file, flags.name));
}

Status List(const TokenFlags& flags) {
  ASSIGN_OR_RETURN(const TokensFile file, OpenTokens(flags.file, O_RDONLY));
  for (const server::Token& token : file.tokens.all())
    PrintTo(stdout, "{:<8} {}\n", Name(token.scope), token.name);
  return {};
}

}  // namespace

void AddToken(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<TokenFlags>();
  CLI::App* command =
      app.add_subcommand("token", "Make, list and revoke the tokens that give access to a server");
  command->footer(
      "Examples:\n"
      "  gpusonde token new --tokens tokens --name node-1 --scope ingest > token\n"
      "  gpusonde token new --tokens tokens --name ada\n"
      "  gpusonde token revoke --tokens tokens --name ada\n\n"
      "The file has a line for each token: its name, scope and hash. Servers read it again when it changes.\n"
      "Scopes: ingest (agents send), metrics (scrapers read /metrics), read (people read all), admin (all).");
  command->require_subcommand(1);
  const auto add = [&](const std::string& name, const std::string& text, bool is_named,
                       Status (*run)(const TokenFlags&)) {
    CLI::App* const verb = command->add_subcommand(name, text);
    verb->add_option("--tokens", flags->file, "The server's file of tokens")->check(Path())->required();
    if (is_named) verb->add_option("--name", flags->name, "Who or what the token is for")->required();
    verb->callback([flags, run, &exit_status] { exit_status = ExitStatusOf("token", run(*flags)); });
    return verb;
  };
  CLI::App* const make = add("new", "Make a token, print it once, and add its hash to the file", true, New);
  make->add_option("--scope", flags->scope, "What it is for: ingest, metrics, read or admin")
      ->capture_default_str()
      ->check(OneOf({server::kScopeNames.begin(), server::kScopeNames.end()}));
  add("list", "Print names and scopes", false, List);
  add("revoke", "Remove a token from the file, which ends its sessions", true, Revoke);
}

}  // namespace gpusonde::app
