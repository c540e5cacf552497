// SPDX-License-Identifier: Apache-2.0
#include "otlp/profile_windows.h"

#include <algorithm>

#include <utility>

#include "exporters/otlp/profiles.h"
#include "model/profile.h"
#include "model/selection.h"
#include "store/queries/gpu_query.h"
#include "store/queries/process_facts.h"
#include "store/queries/profile_query.h"

namespace gpusonde::otlp {

Result<std::vector<Request>> ProfileWindows::Render(int64_t to_ns) {
  std::vector<Request> requests;
  while (from_ns_ < to_ns) {
    const int64_t window_ns = std::min(to_ns - from_ns_, max_window_ns_);
    const Status rendered = RenderWindow(from_ns_ + window_ns, requests);
    if (rendered.has_value()) {
      from_ns_ += window_ns;
      max_window_ns_ = std::min(2 * max_window_ns_, kMaxWindowNs);
    } else if (window_ns > kMinWindowNs) {
      max_window_ns_ = std::max(window_ns / 2, kMinWindowNs);
    } else if (requests.empty()) {
      return Fail(rendered.error());
    } else {
      break;
    }
  }
  return requests;
}

// Adds the requests of the window until `to_ns`, or none of them.
Status ProfileWindows::RenderWindow(int64_t to_ns, std::vector<Request>& requests) {
  const size_t before = requests.size();
  const auto render = [&]() -> Status {
    for (const model::ProfileType type :
         {model::ProfileType::kCpu, model::ProfileType::kGpu, model::ProfileType::kOffCpu}) {
      const model::Selection selection{
          .from_ns = from_ns_, .to_ns = to_ns, .filter = {}, .off_cpu = type == model::ProfileType::kOffCpu};
      ASSIGN_OR_RETURN(const model::Profile profile, type == model::ProfileType::kGpu
                                                         ? store::ReadGpuProfile(store_, selection)
                                                         : store::ReadProfile(store_, selection));
      if (profile.samples.empty()) continue;
      exporters::Options options;
      ASSIGN_OR_RETURN(options.processes, store::ReadProcessFacts(store_, profile));
      ASSIGN_OR_RETURN(std::string body, exporters::kOtlp.render(profile, options));
      requests.push_back({.body = std::move(body), .items = exporters::CountOtlpProfiles(profile, options)});
    }
    return {};
  };
  Status rendered = render();
  if (!rendered.has_value()) requests.resize(before);
  return rendered;
}

}  // namespace gpusonde::otlp
