// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "model/batch.h"

namespace gpusonde::model {

// One column of a valid batch (Validate), read value by value. A column that the batch lacks has no values,
// and reads as 0 or an empty text. The batch must outlive it.
class Column {
 public:
  Column(const Batch& batch, std::string_view name) {
    const auto found = std::ranges::find(batch.columns, name, &ColumnData::name);
    if (found != batch.columns.end()) data_ = &*found;
  }

  template <class T>
  T At(size_t row) const {
    T value{};
    if (data_ != nullptr) std::memcpy(&value, data_->values.data() + row * sizeof value, sizeof value);
    return value;
  }
  std::string_view Text(size_t row) const {
    if (data_ == nullptr) return {};
    const uint32_t begin = row == 0 ? 0 : data_->ends[row - 1];
    return {reinterpret_cast<const char*>(data_->values.data()) + begin, data_->ends[row] - begin};
  }
  bool Has(size_t row) const { return data_ != nullptr && (data_->valid.empty() || data_->valid[row] != 0); }

 private:
  const ColumnData* data_ = nullptr;
};

}  // namespace gpusonde::model
