// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "server/access.h"
#include "server/tokens.h"

namespace gpusonde::server {

// For tests: a file of tokens, of which each is "token of NAME".
class TokensFile {
 public:
  using Entries = std::vector<std::pair<std::string, Scope>>;

  explicit TokensFile(const Entries& entries) { Write(entries); }
  ~TokensFile() { std::filesystem::remove(path_); }
  TokensFile(const TokensFile&) = delete;
  TokensFile& operator=(const TokensFile&) = delete;

  const std::string& path() const { return path_; }
  std::shared_ptr<Access> Open() const { return Access::Open(path_).value(); }

  void Write(const Entries& entries) const {
    std::string text = "# tokens\n\n";
    for (const auto& [name, scope] : entries)
      text += Token{.name = name, .scope = scope, .hash = HashOf(Of(name))}.ToLine() + "\n";
    WriteText(text);
  }
  void WriteText(const std::string& text) const { std::ofstream(path_) << text; }

  static std::string Of(const std::string& name) { return "token of " + name; }

 private:
  inline static int made = 0;
  const std::string path_ =
      testing::TempDir() + "gpusonde-tokens-" + std::to_string(::getpid()) + "-" + std::to_string(made++);
};

}  // namespace gpusonde::server
