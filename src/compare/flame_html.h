// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compare/stack_diff.h"

namespace gpusonde::compare {

// A flame graph of the difference as HTML without scripts: widths are the mean time of both sides, so that
// what is only in one of them is seen too; what takes more time in B is orange, less blue, which readers with
// any colour vision can tell apart, and labels say it in words. Frames narrower than 1/400 are left out, and
// those that all stacks have in common at the bottom. At most 800 kB. Empty without any time.
std::string FlameGraphOf(const StackDiff& diff);

// The style that it needs, once a page.
std::string FlameGraphStyle();

}  // namespace gpusonde::compare
