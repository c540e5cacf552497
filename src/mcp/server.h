// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "mcp/protocol.h"
#include "mcp/source.h"

namespace gpusonde::mcp {

// Answers messages of the protocol, over any transport. It keeps nothing about its clients, so a transport
// may serve any number of them. Thread-safe; one tool runs at a time.
class Server {
 public:
  // `source` must outlive it.
  explicit Server(Source& source) : source_(source) {}

  // The response to a request; nothing for other messages, and for a request that was cancelled. Only a call
  // of a tool takes long.
  std::optional<std::string> Handle(const Message& message);

 private:
  std::string Initialize(const Message& request) const;
  std::optional<std::string> CallTool(const Message& request);
  void Cancel(const std::string& id);

  Source& source_;
  std::mutex calling_;
  std::mutex mutex_;     // guards what follows
  std::string running_;  // the id of the call that runs; empty: none
  bool cancelled_ = false;
};

// Whether a message is a call of a tool.
bool IsToolCall(const Message& message);

}  // namespace gpusonde::mcp
