// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/table.h"

namespace gpusonde::model {

// What this store is, as key and value: schema_version, created_by, title.
struct Meta {
  std::string key;
  std::string value;
};

inline constexpr Table kMeta("meta", Key{1},
                             "What this store is, as key and value: schema_version, created_by, title",
                             Field("key", &Meta::key, "", "what is told"),
                             Field("value", &Meta::value, "", "its value"));

}  // namespace gpusonde::model
