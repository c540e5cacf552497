// SPDX-License-Identifier: Apache-2.0
#include "fleet_catalogs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fd.h"
#include "base/printable.h"
#include "fleet/catalog_file.h"
#include "fleet/kernel_stream.h"

namespace gpusonde::app {

Result<fleet::Catalog> ReadCatalog(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  auto catalog = fleet::ParseCatalog(text);
  if (!catalog.has_value()) return Fail(std::move(catalog).error().With(file));
  return catalog;
}

Result<fleet::Catalog> InstalledCatalog() {
  ASSIGN_OR_RETURN(const auto streams, fleet::ReadKernelStreams(fleet::KernelStreamFolder()));
  fleet::Catalog catalog;
  for (const fleet::KernelStream& stream : streams)
    TRY(AddApplication({.name = stream.source, .fingerprint = fleet::FingerprintOf(stream)}, catalog));
  return catalog;
}

Status AddApplication(fleet::Catalog::Application application, fleet::Catalog& catalog) {
  const std::string name = Printable(application.name);
  if (application.name.empty() || application.name.size() > fleet::kMaxApplicationName)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("an application's name has 1 to {} bytes, not {}", fleet::kMaxApplicationName,
                            application.name.size()));
  if (std::ranges::find(catalog.applications, application.name, &fleet::Catalog::Application::name) !=
      catalog.applications.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the catalog has an application {} already; choose another name", name));
  if (catalog.applications.size() == fleet::kMaxApplications)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("a catalog has at most {} applications; {} is one more", fleet::kMaxApplications, name));
  if (application.fingerprint == fleet::Fingerprint{})
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("no kernel of {} was recorded, so nothing identifies it", name));
  catalog.applications.push_back(std::move(application));
  return {};
}

}  // namespace gpusonde::app
