// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/spans.h"

namespace gpusonde::analyze {

std::string_view WithoutArguments(std::string_view name) {
  for (const std::string_view data : {", seq = ", ", op_id = "}) name = name.substr(0, name.find(data));
  return name;
}

std::string_view RepeatedName(std::string_view name) {
  name = WithoutArguments(name);
  const size_t last = name.find_last_not_of("0123456789");
  const bool numbered = last != std::string_view::npos && last + 1 < name.size() && last > 0;
  return numbered && name[last] == '#' ? name.substr(0, last) : name;
}

std::string_view NameOfTransfer(const GpuRecord& record) {
  if (record.work == importers::GpuWork::kMemset) return "[set]";
  switch (CopyOf(record.name)) {
    case importers::CopyKind::kHostToDevice:
      return "[copy htod]";
    case importers::CopyKind::kDeviceToHost:
      return "[copy dtoh]";
    case importers::CopyKind::kDeviceToDevice:
      return "[copy dtod]";
    case importers::CopyKind::kPeerToPeer:
      return "[copy ptop]";
    case importers::CopyKind::kHostToHost:
      return "[copy htoh]";
    case importers::CopyKind::kUnknown:
      break;
  }
  return "[copy unknown]";
}

}  // namespace gpusonde::analyze
