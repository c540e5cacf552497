// SPDX-License-Identifier: Apache-2.0
#include "store/sql/process_sql.h"

namespace gpusonde::store {

SqlPart IsOfProcesses(const model::Selection& selection) {
  if (selection.processes.size() == 1) return {"process = ?", {selection.processes.front()}};
  SqlPart condition{"process IN (", {}};
  for (const Id128& process : selection.processes)
    condition += {condition.parameters.empty() ? "?" : ", ?", {process}};
  condition.text += ")";
  return condition;
}

SqlPart AndOfProcesses(const model::Selection& selection) {
  if (selection.processes.empty()) return {};
  SqlPart condition{" AND ", {}};
  condition += IsOfProcesses(selection);
  return condition;
}

}  // namespace gpusonde::store
