// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "base/json_depth.h"
#include "mcp/source.h"

namespace gpusonde::mcp {
namespace {

class OverHttp final : public Source {
 public:
  using Ask = std::function<Result<std::string>(const std::string& target)>;
  explicit OverHttp(Ask ask) : ask_(std::move(ask)) {}

  // A request that has been sent is waited for.
  Result<std::string> Get(const std::string& target) override {
    if (interrupted_) return Fail(ErrorCode::kUnavailable, "the call was interrupted");
    ASSIGN_OR_RETURN(std::string body, ask_(target));
    // Tools copy and write parts of it.
    if (IsTooDeep(body))
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("the server's answer nests more than {} levels deep", kMaxJsonDepth));
    return body;
  }
  void Interrupt() override { interrupted_ = true; }
  void Resume() override { interrupted_ = false; }

 private:
  Ask ask_;
  std::atomic<bool> interrupted_ = false;
};

}  // namespace

Result<std::string> Source::Query(const std::string& /*sql*/, int64_t /*max_rows*/) {
  return Fail(ErrorCode::kUnsupported, "SQL needs files: a server has no address for it");
}

Result<std::string> Source::Findings() {
  return Fail(ErrorCode::kUnsupported, "the analysis needs files: a server has no address for it");
}

std::unique_ptr<Source> ServerSource(OverHttp::Ask get) { return std::make_unique<OverHttp>(std::move(get)); }

}  // namespace gpusonde::mcp
