// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpusonde::exporters::prometheus {

// A label whose texts are its own.
struct OwnedLabel {
  std::string name;
  std::string value;
};

// Rules that change the labels of series, or drop series, with the meaning that Prometheus gives them
// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config): actions
// replace, keep, drop, labelmap, labeldrop and labelkeep. The label __name__ can be read, but not set.
// Regular expressions are those of ECMAScript, without back-references, and match whole values; they take
// time that is polynomial in the value's length. Thread-safe.
class Relabelling {
 public:
  Relabelling() = default;  // no rules

  // Reads an array of rules in JSON. Errors: kInvalidArgument with the number of the rule.
  static Result<Relabelling> Parse(std::string_view json);

  bool empty() const { return rules_ == nullptr; }

  // Applies the rules to a series of this family. False: it is dropped.
  bool Apply(std::string_view family, std::vector<OwnedLabel>& labels) const;

 private:
  struct Rule;
  std::shared_ptr<const std::vector<Rule>> rules_;
};

}  // namespace gpusonde::exporters::prometheus
