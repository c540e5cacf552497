// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/table.h"

namespace gpusonde::model {

// Properties of this store as key and value: schema_version, created_by, title.
struct Meta {
  std::string key;
  std::string value;
};

inline constexpr Table kMeta("meta", Key{1},
                             "Properties of this store as key and value: schema_version, created_by, title",
                             Field("key", &Meta::key, "", "name of the property"),
                             Field("value", &Meta::value, "", "its value"));

}  // namespace gpusonde::model
