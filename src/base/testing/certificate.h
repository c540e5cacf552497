// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <memory>
#include <string>

namespace gpusonde {

template <auto Free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, FreeBy<BIO_free>>;

inline std::string TextOf(const Bio& bio) {
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio.get(), &text));
  return {text, size};
}

// A key and a self-signed certificate for localhost, in PEM; its times are seconds from now.
struct Identity {
  std::string key, certificate;

  explicit Identity(int64_t begin_s = -3600, int64_t end_s = 86'400) {
    const std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>> pair(EVP_EC_gen("P-256"));
    const std::unique_ptr<X509, FreeBy<X509_free>> x509(X509_new());
    X509_set_version(x509.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509.get()), begin_s);
    X509_gmtime_adj(X509_getm_notAfter(x509.get()), end_s);
    X509_set_pubkey(x509.get(), pair.get());
    X509_NAME* name = X509_get_subject_name(x509.get());
    const auto* localhost = reinterpret_cast<const unsigned char*>("localhost");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, localhost, -1, -1, 0);
    X509_set_issuer_name(x509.get(), name);
    const std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION_free>> names(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost"));
    X509_add_ext(x509.get(), names.get(), -1);
    X509_sign(x509.get(), pair.get(), EVP_sha256());
    const Bio key_bio(BIO_new(BIO_s_mem())), certificate_bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(key_bio.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
    PEM_write_bio_X509(certificate_bio.get(), x509.get());
    key = TextOf(key_bio);
    certificate = TextOf(certificate_bio);
  }
};

}  // namespace gpusonde
