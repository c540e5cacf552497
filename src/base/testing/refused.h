// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

// Skips a test that needs a feature which this machine's kernel or administrator denies; any other error
// fails it.
#define SKIP_WHERE_REFUSED(result)                                          \
  do {                                                                      \
    const auto& outcome = (result);                                         \
    if (outcome.has_value()) break;                                         \
    if (outcome.error().code != ::gpusonde::ErrorCode::kPermissionDenied && \
        outcome.error().code != ::gpusonde::ErrorCode::kUnsupported)        \
      FAIL() << outcome.error().message;                                    \
    GTEST_SKIP() << outcome.error().message;                                \
  } while (false)
