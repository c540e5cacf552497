// SPDX-License-Identifier: Apache-2.0
#include "server/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing/certificate.h"
#include "base/time.h"

namespace gpusonde::server {
namespace {

int64_t NowS() { return EpochNow() / kNanosPerSecond; }

using testing::HasSubstr;

class TlsTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void Write(const Identity& identity) const {
    std::ofstream(files_.certificate) << identity.certificate;
    std::ofstream(files_.key) << identity.key;
  }

  const std::string folder_ = testing::TempDir() + "gpusonde-tls-" + std::to_string(::getpid());
  const TlsFiles files_{.certificate = folder_ + "/crt", .key = folder_ + "/key"};
};

TEST_F(TlsTest, FilesThatCantServeAreNamed) {
  const auto error = [this] {
    const auto tls = Tls::Open(files_);
    return tls.has_value() ? "" : tls.error().message;
  };
  EXPECT_THAT(error(), HasSubstr("/crt"));
  const Identity identity, other;
  Write(identity);
  EXPECT_EQ(error(), "");
  std::ofstream(files_.key) << other.key;
  EXPECT_THAT(error(),
              HasSubstr("/key has no private key in PEM, without a passphrase, of that certificate"));
  std::ofstream(files_.key)
      << "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIF\n-----END ENCRYPTED PRIVATE KEY-----\n";
  EXPECT_THAT(error(), HasSubstr("/key has no private key"));
  std::ofstream(files_.certificate) << "garbage";
  EXPECT_THAT(error(), HasSubstr("/crt has no certificate in PEM"));
}

TEST_F(TlsTest, ANewCertificateIsUsedOnceItsKeyIsThereToo) {
  Write(Identity(-3600, 1000));
  const auto tls = Tls::Open(files_).value();
  const auto first = tls->Current();
  EXPECT_NEAR(static_cast<double>(tls->expires_s()), static_cast<double>(NowS() + 1000), 60);
  const Identity next(-3600, 90'000);
  std::ofstream(files_.certificate) << next.certificate;
  const auto between = tls->Current();
  EXPECT_NEAR(static_cast<double>(tls->expires_s()), static_cast<double>(NowS() + 1000), 60);
  std::ofstream(files_.key) << next.key;
  EXPECT_NE(tls->Current(), between);
  EXPECT_NEAR(static_cast<double>(tls->expires_s()), static_cast<double>(NowS() + 90'000), 60);
  std::filesystem::remove(files_.certificate);
  EXPECT_NE(tls->Current(), nullptr) << "that from before stays in use";
}

}  // namespace
}  // namespace gpusonde::server
