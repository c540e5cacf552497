// SPDX-License-Identifier: Apache-2.0
#include "diagnose/forewarner.h"

#include <algorithm>

#include "base/time.h"
#include "diagnose/cause.h"
#include "diagnose/incident_table.h"

namespace gpusonde::diagnose {

std::vector<model::Warning> Forewarner::Advance(const HostTimeline& host, const std::set<CauseId>& open,
                                                int64_t now_ns, const Warn& warn) {
  std::vector<model::Warning> changed;
  if (now_ns - looked_ns_ < kNanosPerSecond) return changed;
  looked_ns_ = now_ns;
  const std::set<Id128> devices = host.Devices();
  const std::set<Id128> node = {Id128{}};
  for (const Indicator* indicator : AllIndicators()) {
    const bool is_open =
        std::ranges::any_of(indicator->predicts, [&](CauseId cause) { return open.contains(cause); });
    for (const Id128& device : indicator->of_device ? devices : node) {
      const std::optional<Sign> sign = indicator->evaluate(host, device, now_ns);
      if (const auto known = open_.find({indicator->name, device}); known != open_.end()) {
        if (sign.has_value()) known->second.last_ns = now_ns;
        if (now_ns - known->second.last_ns >= kIncidentTable.warning.calm_ns) changed.push_back(Close(known));
      } else if (sign.has_value() && !is_open) {
        changed.push_back(Open(*indicator, device, *sign, now_ns));
        warn(changed.back());
      }
    }
  }
  return changed;
}

std::vector<model::Warning> Forewarner::Abandon() {
  std::vector<model::Warning> changed;
  while (!open_.empty()) changed.push_back(Close(open_.begin()));
  return changed;
}

model::Warning Forewarner::Open(const Indicator& indicator, const Id128& device, const Sign& sign,
                                int64_t now_ns) {
  model::Warning warning{
      .warning =
          IdHasher("warning").Add(indicator.name).Add(device).Add(static_cast<uint64_t>(now_ns)).Finish(),
      .indicator = std::string(indicator.name),
      .start_ns = now_ns,
      .value = sign.value,
      .most = sign.threshold,
      .expected_ns = sign.expected_ns,
      .sentence = sign.sentence};
  if (indicator.of_device) warning.device = device;
  open_[{indicator.name, device}] = {.warning = warnings_.insert(warnings_.end(), warning),
                                     .last_ns = now_ns};
  if (warnings_.size() > kIncidentTable.warning.max && warnings_.front().end_ns.has_value())
    warnings_.pop_front();
  return warning;
}

model::Warning Forewarner::Close(OpenWarnings::iterator known) {
  model::Warning& warning = *known->second.warning;
  warning.end_ns = known->second.last_ns;
  open_.erase(known);
  return warning;
}

std::vector<model::Warning> Forewarner::Ingest(const model::Incident& incident,
                                               const std::set<Id128>& devices) {
  std::vector<model::Warning> changed;
  const std::optional<CauseId> cause = FindCause(incident.cause);
  if (!cause.has_value()) return changed;
  for (const Indicator* indicator : AllIndicators()) {
    if (std::ranges::find(indicator->predicts, *cause) == indicator->predicts.end()) continue;
    for (model::Warning& warning : warnings_) {
      if (warning.indicator != indicator->name || warning.incident.has_value() ||
          incident.start_ns - warning.start_ns > kIncidentTable.warning.horizon_ns ||
          (warning.device.has_value() && !devices.contains(*warning.device)) ||
          incident.end_ns.value_or(INT64_MAX) < warning.start_ns)
        continue;
      warning.incident = incident.incident;
      warning.lead_ns = incident.start_ns - warning.start_ns;
      changed.push_back(warning);
    }
  }
  return changed;
}

}  // namespace gpusonde::diagnose
