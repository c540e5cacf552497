// SPDX-License-Identifier: Apache-2.0
#include "server/static_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/gzip.h"
#include "base/id128.h"

namespace gpusonde::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{64} << 20;

std::string ContentType(const fs::path& name) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".css", "text/css; charset=utf-8"},
      {".html", "text/html; charset=utf-8"},
      {".ico", "image/x-icon"},
      {".js", "text/javascript; charset=utf-8"},
      {".json", "application/json"},
      {".map", "application/json"},
      {".png", "image/png"},
      {".svg", "image/svg+xml"},
      {".txt", "text/plain; charset=utf-8"},
      {".wasm", "application/wasm"},
      {".woff2", "font/woff2"},
  };
  const auto found = std::ranges::find(kTypes, name.extension().string(),
                                       &std::pair<std::string_view, std::string_view>::first);
  return std::string(found == std::end(kTypes) ? "application/octet-stream" : found->second);
}

// "name-XXXXXXXX.ext": eight characters of base64url.
bool HoldsHash(const fs::path& name) {
  const std::string stem = name.stem().string();
  constexpr size_t kHashLength = 8;
  if (stem.size() <= kHashLength || stem[stem.size() - kHashLength - 1] != '-') return false;
  return stem.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
                                stem.size() - kHashLength) == std::string::npos;
}

}  // namespace

Result<StaticFiles> StaticFiles::Load(const std::string& folder) {
  StaticFiles loaded;
  size_t total = 0;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (entries->path().filename().string().starts_with('.')) {
      entries.disable_recursion_pending();
      continue;
    }
    if (entries->symlink_status(error).type() != fs::file_type::regular) continue;
    Result<std::string> content = ReadFile(entries->path().string(), kMaxBytes - total);
    if (!content.has_value()) return Fail(std::move(content.error()).With("the UI's files"));
    total += content->size();
    const std::string path = "/" + entries->path().lexically_relative(folder).generic_string();
    loaded.files_.emplace(path, Prepare(path, *std::move(content)));
  }
  if (error) return Fail(ErrnoError(error.value(), fmt::format("read the folder {}", folder)));
  return loaded;
}

StaticFiles::File StaticFiles::Prepare(const std::string& name, std::string content) {
  File file{.type = ContentType(name), .is_hashed = HoldsHash(name)};
  file.etag = fmt::format("\"{}\"", IdHasher("file").Add(content).Finish().ToHex());
  std::string gzipped = Gzip(content, kGzipSmall);
  if (gzipped.size() < content.size()) file.gzipped = std::make_shared<const std::string>(std::move(gzipped));
  file.content = std::make_shared<const std::string>(std::move(content));
  return file;
}

HttpResponse StaticFiles::Get(const HttpRequest& request) const {
  const auto found = files_.find(request.path == "/" ? "/index.html" : request.path);
  if (found == files_.end())
    return ErrorResponse({ErrorCode::kNotFound, fmt::format("there is no page '{}' here", request.path)});
  const File& file = found->second;
  HttpResponse response{
      .content_type = file.type,
      .cache_control = file.is_hashed ? "public, max-age=31536000, immutable" : "no-cache",
      .etag = file.etag,
  };
  if (request.if_none_match.contains(file.etag)) {
    response.status = 304;
    return response;
  }
  response.gzipped = request.accepts_gzip && file.gzipped;
  response.body = response.gzipped ? file.gzipped : file.content;
  return response;
}

}  // namespace gpusonde::server
