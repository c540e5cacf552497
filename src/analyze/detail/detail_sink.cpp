// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/detail_sink.h"

#include <utility>

namespace gpusonde::analyze {

Status ReadAll(importers::Trace& trace, bool partial, DetailSink& sink) {
  ASSIGN_OR_RETURN(const auto reader, trace.MakeReader(sink));
  importers::Shard shard;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, trace.Next(shard));
    if (!more) return {};
    Status read = reader->Read(shard);
    if (!read.has_value() && !partial) return Fail(std::move(read).error());
  }
}

}  // namespace gpusonde::analyze
