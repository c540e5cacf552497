// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::server {

// An address to listen on.
struct ListenAddress {
  std::string ip = "127.0.0.1";  // an IPv4 or IPv6 address, without brackets
  uint16_t port = 0;             // 0: any free port

  // Whether only this machine can reach it; false for a text that is no address.
  bool IsLoopback() const;
  // Whether it stands for all addresses of this machine, as 0.0.0.0 does.
  bool IsEvery() const;
  // "127.0.0.1:7171", "[::1]:7171".
  std::string ToText() const;
};

// Parses what ToText writes; "localhost" is 127.0.0.1. Errors: kInvalidArgument.
Result<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace gpusonde::server
