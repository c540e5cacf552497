// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "importers/stream/byte_source.h"
#include "importers/trace.h"

// Chrome-style JSON of PyTorch's profiler (Kineto), plain, gzip or zstd.
namespace gpusonde::importers::kineto {

Result<std::unique_ptr<Trace>> OpenKineto(std::unique_ptr<ByteSource> source, const OpenOptions& options);

}  // namespace gpusonde::importers::kineto
