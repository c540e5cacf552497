// SPDX-License-Identifier: Apache-2.0
#include "received.h"

#include <algorithm>
#include <variant>

namespace gpusonde::cupti {

Status Received::Drain(GpuEvents& events) {
  return events.Drain(sources::VisitOnly([this](const Event& event) { Add(event); }));
}

void Received::Add(const Event& event) {
  pids.insert(event.pid);
  if (const auto* begin = std::get_if<SessionBegin>(&event.what)) begins.push_back(*begin);
  if (const auto* end = std::get_if<SessionEnd>(&event.what)) ends.push_back(*end);
  if (const auto* device = std::get_if<Device>(&event.what))
    devices.push_back({*device, std::string(device->name)});
  if (const auto* kernel = std::get_if<Kernel>(&event.what))
    kernels.push_back({*kernel, std::string(kernel->name), event.session});
  if (const auto* copy = std::get_if<Memcpy>(&event.what)) copies.push_back(*copy);
  if (const auto* set = std::get_if<Memset>(&event.what)) sets.push_back(*set);
  if (const auto* sync = std::get_if<Sync>(&event.what)) syncs.push_back(*sync);
  if (const auto* call = std::get_if<Call>(&event.what))
    calls.push_back({*call,
                     std::string(call->name),
                     event.tid,
                     event.session,
                     {event.stack.user().begin(), event.stack.user().end()},
                     event.stack_taken});
  if (const auto* node = std::get_if<GraphNode>(&event.what)) nodes.push_back(*node);
  if (const auto* range = std::get_if<Range>(&event.what)) ranges.emplace_back(range->text);
  if (const auto* foreign = std::get_if<Foreign>(&event.what)) holders.emplace_back(foreign->holder);
  if (const auto* joined = std::get_if<Communicator>(&event.what)) communicators.push_back(*joined);
  if (const auto* collective = std::get_if<Collective>(&event.what)) collectives.push_back(*collective);
  if (const auto* overhead = std::get_if<Overhead>(&event.what)) overheads.push_back(*overhead);
  if (const auto* total = std::get_if<Total>(&event.what)) {
    Sum sum{total->count, total->untimed, total->total_ns, total->bytes};
    // A snapshot's totals include the records that were held for it.
    if (total->joined && total->of == Total::Of::kKernel)
      sum.count -= static_cast<uint64_t>(std::ranges::count_if(kernels, [&](const KernelOf& kernel) {
        return kernel.session == event.session && kernel.kernel_name == total->name;
      }));
    (total->joined ? earlier_totals : totals)[{event.session, total->of, std::string(total->name)}] = sum;
  }
}

Received::Sum Received::TotalOf(Total::Of of, const std::string& name) const {
  Sum sum;
  for (const auto& [key, total] : totals) {
    if (std::get<1>(key) != of || std::get<2>(key) != name) continue;
    sum.count += total.count;
    sum.untimed += total.untimed;
    sum.total_ns += total.total_ns;
    sum.bytes += total.bytes;
  }
  return sum;
}

}  // namespace gpusonde::cupti
