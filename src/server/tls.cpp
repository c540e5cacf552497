// SPDX-License-Identifier: Apache-2.0
#include "server/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "base/regular_file.h"
#include "base/time.h"

namespace gpusonde::server {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

// The machine's bundle of all public authorities has 220 KB.
constexpr size_t kMaxFileBytes = size_t{4} << 20;

Result<std::string> ReadPem(const std::string& path) {
  ASSIGN_OR_RETURN(const Fd file, OpenRegular(path));
  return ReadRegular(file, kMaxFileBytes);
}

Status Check(const error_code& error, const std::string& file, std::string_view what) {
  if (!error) return {};
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} has no {}: {}", file, what, error.message()));
}

// In seconds since the epoch.
int64_t EndOf(const X509* certificate) {
  std::tm end{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return 0;
  return ::timegm(&end);
}

void WarnIfExpired(const std::string& file, int64_t expires_s) {
  if (expires_s < EpochNow() / kNanosPerSecond)
    LogWarn("the certificate in {} has expired: clients will refuse it", file);
}

void Restrict(ssl::context& context) {
  context.set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                      ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 | SSL_OP_NO_TICKET |
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX* const raw = context.native_handle();
  SSL_CTX_ctrl(raw, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20");  // of TLS 1.2
  // Instead of asking at the terminal.
  SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void*) { return -1; });
}

}  // namespace

Tls::Tls(TlsFiles files)
    : files_(std::move(files)), watched_({files_.certificate, files_.key, files_.client_ca}) {}

Status Tls::Read() {
  watched_.MarkRead();
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  Restrict(*context);
  error_code error;
  ASSIGN_OR_RETURN(const std::string certificate, ReadPem(files_.certificate));
  context->use_certificate_chain(asio::buffer(certificate), error);
  TRY(Check(error, files_.certificate, "certificate in PEM"));
  ASSIGN_OR_RETURN(const std::string key, ReadPem(files_.key));
  context->use_private_key(asio::buffer(key), ssl::context::pem, error);
  TRY(Check(error, files_.key, "private key in PEM, without a passphrase, of that certificate"));
  if (!files_.client_ca.empty()) {
    ASSIGN_OR_RETURN(const std::string authorities, ReadPem(files_.client_ca));
    context->add_certificate_authority(asio::buffer(authorities), error);
    TRY(Check(error, files_.client_ca, "CA certificate in PEM"));
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
    TRY(Check(error, files_.client_ca, "use"));
  }
  expires_s_ = EndOf(SSL_CTX_get0_certificate(context->native_handle()));
  context_ = std::move(context);
  return {};
}

Result<std::shared_ptr<Tls>> Tls::Open(TlsFiles files) {
  std::shared_ptr<Tls> tls(new Tls(std::move(files)));
  const std::lock_guard lock(tls->mutex_);
  TRY(tls->Read());
  WarnIfExpired(tls->files_.certificate, tls->expires_s_);
  return tls;
}

std::shared_ptr<ssl::context> Tls::Current() {
  const std::lock_guard lock(mutex_);
  const WatchedFiles::State state = watched_.Check();
  if (state == WatchedFiles::State::kSame) return context_;
  const Status read = Read();
  if (state == WatchedFiles::State::kUnsettled) return context_;
  if (!read.has_value()) {
    LogError("can't use the new TLS files, so those from before stay in use: {}", read.error().message);
    return context_;
  }
  LogInfo("uses the new TLS certificate in {}", files_.certificate);
  WarnIfExpired(files_.certificate, expires_s_);
  return context_;
}

int64_t Tls::expires_s() const {
  const std::lock_guard lock(mutex_);
  return expires_s_;
}

}  // namespace gpusonde::server
