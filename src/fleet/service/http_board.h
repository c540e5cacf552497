// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fleet/service/board_client.h"
#include "net/http_client.h"

namespace gpusonde::fleet {

// The aggregator at a URL (board_routes.h). Not thread-safe.
class HttpBoard final : public BoardClient {
 public:
  struct Options {
    net::HttpUrl url;        // its target is replaced
    std::string token_file;  // empty: none; read for each request
    net::ClientTls tls;
  };
  explicit HttpBoard(Options options) : options_(std::move(options)) {}

  Result<std::vector<Bytes>> Notices(uint32_t epoch) override;
  Result<std::vector<Bytes>> Enrolments(uint32_t epoch) override;
  Result<std::vector<ListedReports>> Lists(uint32_t epoch) override;
  Status PostNotice(std::span<const uint8_t> notice) override;
  Result<std::string> PostReport(std::span<const uint8_t> report) override;

  // What it released from one epoch to another, and what happens now, as text or JSON for people.
  Result<std::string> Results(std::string_view format, int64_t epochs);

 private:
  Result<std::string> Ask(const std::string& target, std::span<const uint8_t> body, bool is_post) const;
  Result<Bytes> Get(const std::string& target) const;

  Options options_;
};

}  // namespace gpusonde::fleet
