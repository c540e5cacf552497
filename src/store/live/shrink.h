// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/batch.h"

namespace gpusonde::store {

// Frees the room that the batch's columns have beyond their rows: filled row by row, they have up to twice
// what they need. Returns the bytes that they take.
int64_t ShrinkToFit(model::Batch& batch);

}  // namespace gpusonde::store
