// SPDX-License-Identifier: Apache-2.0
// The body of an agent's request, decoded and checked as `serve` does before its store sees the rows. The
// frames of odd inputs are compressed first, so that mutations reach the content of the zstd frames.
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch.h"
#include "model/schema.h"
#include "spool/codec.h"
#include "spool/upload.h"

using gpusonde::spool::AppendToUpload;
using gpusonde::spool::DecodeUpload;

static std::string CompressFrames(std::string_view body) {
  std::string compressed;
  uint32_t length = 0;
  while (body.size() >= sizeof length) {
    std::memcpy(&length, body.data(), sizeof length);
    body.remove_prefix(sizeof length);
    const std::string_view content = body.substr(0, length);
    body.remove_prefix(content.size());
    std::vector<std::byte> frame(ZSTD_compressBound(content.size()));
    const size_t size = ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 1);
    if (ZSTD_isError(size) != 0) std::abort();
    AppendToUpload(std::span(frame).first(size), compressed);
  }
  return compressed;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string body = data[0] % 2 == 1 ? CompressFrames(input) : std::string(input);
  const auto batches = DecodeUpload(body);
  if (!batches.has_value()) {
    if (batches.error().message.empty()) std::abort();
    return 0;
  }
  size_t bytes = 0;
  std::string again;
  for (const model::Batch& batch : *batches) {
    if (!model::Validate(batch).has_value()) std::abort();
    for (const model::ColumnData& column : batch.columns) bytes += column.values.size();
    const auto encoded = spool::EncodeBatch(batch);
    if (!encoded.has_value()) std::abort();
    AppendToUpload(*encoded, again);
    // What passes has no null that the store's columns lack room for.
    const model::TableInfo* table = model::FindTable(batch.table);
    if (table == nullptr || !model::CheckAgainstSchema(batch).has_value()) continue;
    for (const model::ColumnInfo& column : table->columns) {
      const auto sent = std::ranges::find(batch.columns, column.name, &model::ColumnData::name);
      if (sent == batch.columns.end()) continue;
      if (sent->type != column.type) std::abort();
      if (!column.nullable && std::ranges::find(sent->valid, 0) != sent->valid.end()) std::abort();
    }
  }
  if (bytes > spool::kMaxDecodedUploadBytes) std::abort();
  // Accepted input survives a round trip.
  const auto decoded = DecodeUpload(again);
  if (!decoded.has_value() || decoded->size() != batches->size()) std::abort();
  for (size_t i = 0; i < batches->size(); ++i)
    if ((*decoded)[i].rows != (*batches)[i].rows || (*decoded)[i].table != (*batches)[i].table) std::abort();
  return 0;
}
