// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes.h"
#include "store/duckdb/library.h"

namespace gpusonde::doctor {

// Recordings and the store are DuckDB databases; loads the library as `record` does when it finishes.
Finding ProbeDuckdb(const Settings&) {
  const auto library = store::duckdb::LoadLibrary();
  if (!library.has_value())
    return Fails(library.error().message,
                 "run `make setup`, or set GPUSONDE_DUCKDB to the path of libduckdb.so");
  return Works(std::string("DuckDB ") + (*library)->library_version());
}

}  // namespace gpusonde::doctor
