// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <memory>

#include "five_libraries/stages.h"

namespace five {
namespace {

struct Stage {
  virtual ~Stage() = default;
  virtual long Run(long rounds) = 0;
};

struct Second final : Stage {
  std::function<long(long)> next = [](long rounds) { return SecondLibrary(rounds) + 1; };
  long Run(long rounds) override { return next(rounds) + 1; }
};

}  // namespace

long FirstLibrary(long rounds) {
  const std::unique_ptr<Stage> stage = std::make_unique<Second>();
  return stage->Run(rounds) + 1;
}

}  // namespace five
