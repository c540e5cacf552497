// SPDX-License-Identifier: Apache-2.0
#include "server/polled_data.h"

#include "compare/run.h"

namespace gpusonde::server {

Result<compare::Run> PolledData::ReadRun(const model::Selection& selection, const std::string& name) {
  return data_.ReadRun(selection, name);
}

}  // namespace gpusonde::server
