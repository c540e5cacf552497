// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace gpusonde::pods {

// Larger than the answers of kubelet (its own limit is 16 MiB) and of container runtimes.
inline constexpr size_t kMaxReplyBytes = size_t{16} << 20;

// A call of gRPC with one request and one reply.
struct GrpcCall {
  std::string socket;        // path of the server's Unix socket
  std::string method;        // "/v1.PodResourcesLister/List"
  std::string_view request;  // a protobuf message
  size_t max_reply_bytes = kMaxReplyBytes;
  int64_t timeout_ns = 3 * kNanosPerSecond;  // of the whole call
};

// Makes the call on a connection of its own, over HTTP/2 without TLS as gRPC defines it
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md), and returns the reply's message. Ends
// early when a stop is requested. Errors: kNotFound without a socket there, kPermissionDenied if it may not
// be connected to, or the server says so; kUnavailable if nobody listens, for no reply in time and for a
// failure that the server reports; kUnsupported if it doesn't know the method; kCorrupt for a reply that is
// none, or too long. Thread-safe.
Result<std::string> CallGrpc(const GrpcCall& call, const std::stop_token& stop = {});

}  // namespace gpusonde::pods
