// SPDX-License-Identifier: Apache-2.0
#include "store/live/shrink.h"

namespace gpusonde::store {

int64_t ShrinkToFit(model::Batch& batch) {
  size_t bytes = 0;
  for (model::ColumnData& column : batch.columns) {
    column.values.shrink_to_fit();
    column.ends.shrink_to_fit();
    column.valid.shrink_to_fit();
    bytes += column.values.capacity() + column.ends.capacity() * sizeof(uint32_t) + column.valid.capacity();
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace gpusonde::store
