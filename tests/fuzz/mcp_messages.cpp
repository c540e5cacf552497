// SPDX-License-Identifier: Apache-2.0
// Messages of clients of `gpusonde mcp`, and what a server answers, over a source that answers with the same
// bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "mcp/answer.h"
#include "mcp/flame_graph.h"
#include "mcp/protocol.h"
#include "mcp/server.h"
#include "mcp/source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto source = mcp::ServerSource([&text](const std::string&) -> Result<std::string> { return text; });
  mcp::Server server(*source);
  const auto message = mcp::ParseMessage(text);
  if (!message.has_value() && message.error().empty()) std::abort();
  if (message.has_value()) {
    const auto response = server.Handle(*message);
    if (response.has_value() != (message->kind == mcp::Message::Kind::kRequest)) std::abort();
    if (response.has_value() && response->contains('\n')) std::abort();
  }
  (void)mcp::HottestPaths(text, {.query = "", .bounds = "{}"}, 10);
  const std::string answer = mcp::FinishAnswer(text, 10);
  if (answer.size() > mcp::kMaxAnswerBytes + 10'000) std::abort();
  if (answer.find_first_of(std::string_view("\x1b\n\x7f", 3)) != std::string::npos) std::abort();
  return 0;
}
