// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "command.h"

namespace gpusonde::app {

// Every command, by name.
std::span<const Command> AllCommands();

}  // namespace gpusonde::app
