// SPDX-License-Identifier: Apache-2.0
#include "agent/python_process.h"

#include "base/log.h"

namespace gpusonde::agent {
namespace {

// The cache of code objects is cleared at this size; each takes some 500 bytes. A process that has loaded
// PyTorch shows about 3,000 in its samples; one that compiles code all the time shows new ones without end.
constexpr size_t kMaxCodes = 20'000;

}  // namespace

const symbols::PythonCode* PythonProcess::Find(const gpusonde_python_frame& frame) {
  const Key key{frame.code, frame.check};
  auto found = codes_.find(key);
  if (found == codes_.end()) {
    if (codes_.size() >= kMaxCodes) codes_.clear();
    const uint64_t code_type = interpreter_->code_type == 0 ? 0 : interpreter_->code_type + bias_;
    Result<symbols::PythonCode> code =
        symbols::ReadPythonCode(memory_, *interpreter_->layout, code_type, frame.code, frame.check);
    if (!code.has_value()) LogDebug("a Python frame has no name: {}", code.error().message);
    found = codes_.emplace(key, code.has_value() ? std::optional(std::move(*code)) : std::nullopt).first;
  }
  return found->second.has_value() ? &*found->second : nullptr;
}

}  // namespace gpusonde::agent
