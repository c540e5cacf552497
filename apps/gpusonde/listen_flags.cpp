// SPDX-License-Identifier: Apache-2.0
#include "listen_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "values.h"

namespace gpusonde::app {

void AddTlsFlags(CLI::App& command, ListenFlags& flags) {
  CLI::Option* const certificate = command
                                       .add_option("--tls-cert", flags.certificate,
                                                   "PEM file with the TLS certificate and its chain [none]")
                                       ->check(Path());
  CLI::Option* const key =
      command.add_option("--tls-key", flags.key, "PEM file with the certificate's key [none]")->check(Path());
  certificate->needs(key);
  key->needs(certificate);
}

void AddListenFlags(CLI::App& command, ListenFlags& flags) {
  AddTlsFlags(command, flags);
  command
      .add_option("--tokens", flags.tokens,
                  "File with the tokens that give access, which `gpusonde token new` adds to [none]")
      ->check(Path());
  command.add_flag(
      "--insecure", flags.insecure,
      "Listen beyond loopback without TLS or without tokens: anyone on the network path, or who reaches the "
      "address, can then read everything");
}

server::ListenAddress ParseListen(const std::string& option, const std::string& text,
                                  const ListenFlags& flags) {
  const auto address = server::ParseListenAddress(text);
  if (!address.has_value()) throw CLI::ValidationError(option, address.error().message);
  if (address->IsLoopback() || flags.insecure) return *address;
  std::string missing;
  if (flags.certificate.empty()) missing = "TLS (--tls-cert and --tls-key)";
  if (flags.tokens.empty()) missing += missing.empty() ? "tokens (--tokens)" : " and tokens (--tokens)";
  if (missing.empty()) return *address;
  throw CLI::ValidationError(
      option, fmt::format("other machines reach {}, so it needs {}; behind a proxy that has both, --insecure "
                          "allows it without",
                          address->ToText(), missing));
}

std::string PlaceOf(const std::string& url, const server::ListenAddress& listen) {
  return listen.IsEvery() ? url + " and this machine's other addresses" : url;
}

Result<server::Guard> OpenGuard(const ListenFlags& flags, const std::string& client_ca) {
  server::Guard guard;
  if (!flags.certificate.empty()) {
    ASSIGN_OR_RETURN(
        guard.tls,
        server::Tls::Open({.certificate = flags.certificate, .key = flags.key, .client_ca = client_ca}));
  }
  if (!flags.tokens.empty()) {
    ASSIGN_OR_RETURN(guard.access, server::Access::Open(flags.tokens));
  }
  return guard;
}

std::vector<std::string> FilesOf(const ListenFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& file : {flags.certificate, flags.key, flags.tokens})
    if (!file.empty()) files.push_back(file);
  return files;
}

}  // namespace gpusonde::app
