// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fleet/catalog.h"

namespace gpusonde::app {

// Reads a catalog of applications. Errors: those of the file, and of fleet::ParseCatalog with the file's
// name.
Result<fleet::Catalog> ReadCatalog(const std::string& file);

// The applications whose kernel streams are installed with gpusonde.
Result<fleet::Catalog> InstalledCatalog();

// Adds an application. Errors: kInvalidArgument, if it can't be in a catalog or is in this one already.
Status AddApplication(fleet::Catalog::Application application, fleet::Catalog& catalog);

}  // namespace gpusonde::app
