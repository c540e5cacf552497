// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "mcp/source.h"

namespace gpusonde::mcp {
namespace {

class OverHttp final : public Source {
 public:
  using Ask = std::function<Result<std::string>(const std::string& target)>;
  explicit OverHttp(Ask ask) : ask_(std::move(ask)) {}

  Result<std::string> Get(const std::string& target) override { return ask_(target); }
  bool live() const override { return true; }

 private:
  Ask ask_;
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
