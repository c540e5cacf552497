// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

// Skips a test that needs a feature which this machine's kernel or administrator denies; any other error
// fails it.
#define SKIP_WHERE_REFUSED(result)                              \
  do {                                                          \
    if ((result).has_value()) break;                            \
    const ::gpusonde::Error why = (result).error();             \
    if (why.code != ::gpusonde::ErrorCode::kPermissionDenied && \
        why.code != ::gpusonde::ErrorCode::kUnsupported)        \
      FAIL() << why.message;                                    \
    GTEST_SKIP() << why.message;                                \
  } while (false)
