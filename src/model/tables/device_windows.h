// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// How long a device was busy in a window; idle windows have no row.
struct DeviceWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Id128 device;
  int64_t busy_ns = 0;
};

inline constexpr Table kDeviceWindows(
    "device_windows", kFacts, "How long a device was busy in a window; idle windows have no row",
    Field("start_ns", &DeviceWindow::start_ns, "ns", "begin"),
    Field("end_ns", &DeviceWindow::end_ns, "ns", "end"), Field("device", &DeviceWindow::device, "", "which"),
    Field("busy_ns", &DeviceWindow::busy_ns, "ns", "time in which any kernel, copy or set ran"));

}  // namespace gpusonde::model
