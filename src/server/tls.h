// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/file_stamp.h"
#include "base/result.h"

namespace boost::asio::ssl {
class context;  // NOLINT(readability-identifier-naming): Boost's
}

namespace gpusonde::server {

// PEM files of a server.
struct TlsFiles {
  std::string certificate;     // the server's, then those that lead to its authority
  std::string key;             // its private key, without a passphrase
  std::string client_ca = {};  // authorities that clients need a certificate of; empty: they need none
};

// TLS 1.2 and 1.3 for a server, with forward secrecy. Reads its files again when they change; connections
// keep what they began with. Sessions aren't resumed, so that a client's certificate is checked for each
// connection. Thread-safe.
class Tls {
 public:
  // Errors, naming the file: kInvalidArgument for one that isn't PEM or has a passphrase, and for a key that
  // isn't the certificate's; those of OpenRegular.
  static Result<std::shared_ptr<Tls>> Open(TlsFiles files);

  // For the next connection. Files that have changed and can't be used are logged, and those from before stay
  // in use until they change again.
  std::shared_ptr<boost::asio::ssl::context> Current();

  // When the certificate in use ends, in seconds since the epoch.
  int64_t expires_s() const;

 private:
  explicit Tls(TlsFiles files);
  Status Read();

  const TlsFiles files_;
  mutable std::mutex mutex_;  // guards what follows
  WatchedFiles watched_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  int64_t expires_s_ = 0;
};

}  // namespace gpusonde::server
