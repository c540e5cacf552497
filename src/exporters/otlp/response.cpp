// SPDX-License-Identifier: Apache-2.0
#include "exporters/otlp/response.h"

#include <otlp.pb.h>

#include <algorithm>

namespace gpusonde::exporters {

OtlpRejection ReadOtlpResponse(std::string_view body) {
  otlp::ExportResponse response;
  if (!response.ParseFromArray(body.data(), static_cast<int>(body.size()))) return {};
  const otlp::PartialSuccess& partial = response.partial_success();
  return {.items = std::max<int64_t>(partial.rejected(), 0), .message = partial.error_message()};
}

}  // namespace gpusonde::exporters
