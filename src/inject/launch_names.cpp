// SPDX-License-Identifier: Apache-2.0
#include "inject/launch_names.h"

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

struct Launch {
  uint32_t correlation;
  uint32_t name;
};
// More than are launched between two looks at the records, at 200,000 a second.
constexpr uint32_t kLaunches = 1 << 16;

Mutex g_mutex;  // guards the rest; held for the time of a look-up
uint32_t g_unloads_known = 0;
constinit Names g_names;
Launch* g_launches = nullptr;

}  // namespace

void NoteUnload() { __atomic_fetch_add(&g_unloads, 1, __ATOMIC_RELEASE); }

void NoteLaunch(uint32_t correlation, const char* name) {
  const Locked locked(g_mutex);
  if (g_launches == nullptr) g_launches = static_cast<Launch*>(Pages(kLaunches * sizeof(Launch)));
  if (g_launches == nullptr) return;
  if (const uint32_t unloads = Unloads(); unloads != g_unloads_known) {
    g_names.ForgetPointers();
    g_unloads_known = unloads;
  }
  g_launches[correlation % kLaunches] = {correlation, g_names.Identify(name)};
}

std::optional<uint32_t> InternLaunch(uint32_t correlation, Names& names, uint32_t session, Batch& out) {
  const Locked locked(g_mutex);
  if (g_launches == nullptr) return std::nullopt;
  const Launch& launch = g_launches[correlation % kLaunches];
  if (launch.correlation != correlation || launch.name == GPUSONDE_GPU_OTHER_NAME) return std::nullopt;
  return names.InternFrom(g_names, launch.name, session, out);
}

}  // namespace gpusonde::inject
