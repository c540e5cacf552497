// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/http_server.h"
#include "server/listen_address.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// How the user protects the addresses that a command listens on.
struct ListenFlags {
  std::string certificate, key;  // empty: no TLS
  std::string tokens;            // a file (server/tokens.h); empty: everybody has access
  bool insecure = false;
};

// Adds --tls-cert and --tls-key to a command.
void AddTlsFlags(CLI::App& command, ListenFlags& flags);

// Adds --tls-cert, --tls-key, --tokens and --insecure to a command.
void AddListenFlags(CLI::App& command, ListenFlags& flags);

// Parses the address that `option` gives. Throws CLI::ValidationError, which names the option, for an address
// that other machines reach without TLS or without tokens, unless --insecure allows it.
server::ListenAddress ParseListen(const std::string& option, const std::string& text,
                                  const ListenFlags& flags);

// A server's URL as people are told of it: one that listens on all addresses has the URL of one of them.
std::string PlaceOf(const std::string& url, const server::ListenAddress& listen);

// Reads the files. Clients at the agents' address need certificates of `client_ca`, unless it is empty.
Result<server::Guard> OpenGuard(const ListenFlags& flags, const std::string& client_ca = {});

// The files that OpenGuard reads, again while the command runs.
std::vector<std::string> FilesOf(const ListenFlags& flags);

}  // namespace gpusonde::app
