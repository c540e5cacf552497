// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "symbols/python_code.h"
#include "symbols/python_interpreter.h"
#include "wire/python.h"

namespace gpusonde::agent {

// The CPython interpreter in one process and the code objects seen in its frames. Not thread-safe.
class PythonProcess {
 public:
  // `interpreter`, not null, is loaded in the process at its own addresses plus `bias`.
  PythonProcess(int32_t pid, std::shared_ptr<const symbols::PythonInterpreter> interpreter, uint64_t bias)
      : memory_(pid), interpreter_(std::move(interpreter)), bias_(bias) {}

  // What the eBPF programs need to know to read its frames.
  gpusonde_python Describe() const {
    return {.runtime = interpreter_->runtime + bias_, .layout = interpreter_->layout->walk};
  }

  // Whether the native frame at `address` runs the evaluation loop.
  bool IsEvaluator(uint64_t address) const { return interpreter_->IsEvaluator(address - bias_); }

  // The function of a frame, read from the process on first use; null if it no longer exists. Valid until the
  // next call.
  const symbols::PythonCode* Find(const gpusonde_python_frame& frame);

  bool operator==(const PythonProcess& other) const {
    return interpreter_ == other.interpreter_ && bias_ == other.bias_;
  }

 private:
  struct Key {
    uint64_t code;
    uint32_t check;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return (key.code >> 4) * 31 + key.check; }
  };

  symbols::ProcessMemory memory_;
  std::shared_ptr<const symbols::PythonInterpreter> interpreter_;
  uint64_t bias_;
  std::unordered_map<Key, std::optional<symbols::PythonCode>, KeyHash> codes_;
};

}  // namespace gpusonde::agent
