// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/spans.h"

namespace gpusonde::analyze {

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
