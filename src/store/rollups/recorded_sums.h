// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "store/store.h"

namespace gpusonde::store {

// Recordings (OpenRecordings of so many files) as a store whose queries use the sums that `gpusonde up` left
// in its files of days: a day of a busy GPU is answered in seconds instead of minutes. Time that is not
// summed in every file with rows there is read in rows. Errors: those of queries.
Result<std::unique_ptr<Store>> UseRecordedSums(std::unique_ptr<Store> recordings, size_t files);

}  // namespace gpusonde::store
