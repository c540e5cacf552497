// SPDX-License-Identifier: Apache-2.0
#include "server/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "base/text.h"

namespace gpusonde::server {
namespace {

bool IsIPv4(const std::string& ip) {
  in_addr address{};
  return inet_pton(AF_INET, ip.c_str(), &address) == 1;
}

bool IsIPv6(const std::string& ip) {
  in6_addr address{};
  return inet_pton(AF_INET6, ip.c_str(), &address) == 1;
}

}  // namespace

bool ListenAddress::IsLoopback() const {
  in_addr v4{};
  if (inet_pton(AF_INET, ip.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, ip.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

bool ListenAddress::IsEvery() const {
  in_addr v4{};
  if (inet_pton(AF_INET, ip.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  return inet_pton(AF_INET6, ip.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

std::string ListenAddress::ToText() const {
  return ip.contains(':') ? fmt::format("[{}]:{}", ip, port) : fmt::format("{}:{}", ip, port);
}

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const auto malformed = [text] {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' is not an address to listen on; it must be IP:PORT, as in 127.0.0.1:7171 or "
                    "[::1]:7171 (port 0: any free port)",
                    text));
  };
  const size_t colon = text.rfind(':');
  // inet_pton would stop reading at a NUL, and take what is before it for the address.
  if (colon == std::string_view::npos || text.contains('\0')) return malformed();
  const std::string_view host = text.substr(0, colon);
  ListenAddress address;
  if (host.starts_with('[') && host.ends_with(']')) {
    address.ip = host.substr(1, host.size() - 2);
    if (!IsIPv6(address.ip)) return malformed();
  } else {
    if (host != "localhost") address.ip = host;
    if (!IsIPv4(address.ip)) return malformed();
  }
  const auto port = ParseNumber<uint16_t>(text.substr(colon + 1));
  if (!port.has_value()) return malformed();
  address.port = *port;
  return address;
}

}  // namespace gpusonde::server
