// SPDX-License-Identifier: Apache-2.0
#include "server/ui_files.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/html.h"
#include "base/log.h"
#include "base/program_file.h"
#include "server/static_files.h"

namespace gpusonde::server {
namespace {

namespace fs = std::filesystem;

HttpResponse NoUiPage(const std::vector<std::string>& folders) {
  std::string looked_in;
  for (const std::string& folder : folders)
    looked_in += fmt::format("<li><code>{}</code>", EscapedHtml(folder));
  return {.status = 503,
          .content_type = "text/html; charset=utf-8",
          .body = std::make_shared<const std::string>(fmt::format(
              "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>gpusonde</title>"
              "<h1>The UI was not built</h1>"
              "<p>The server runs, and its API answers at <a href=\"/api/v1/overview\">/api/v1/overview</a>, "
              "but the pages are missing. Run <code>make build</code> in the source tree and start gpusonde "
              "again, or set the environment variable <code>GPUSONDE_WEB</code> to a folder that has them."
              "<p>Searched folders:<ul>{}</ul></html>\n",
              looked_in))};
}

}  // namespace

std::vector<std::string> UiFolders() {
  if (const char* named = std::getenv("GPUSONDE_WEB"); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> folders;
  if (const Result<std::string> installed = InstallFolder(); installed.has_value())
    folders.push_back(*installed + "/share/gpusonde/web");
  folders.emplace_back(GPUSONDE_WEB_BUILD_FOLDER);
  return folders;
}

HttpHandler UiHandler(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) continue;
    Result<StaticFiles> files = StaticFiles::Load(folder);
    if (!files.has_value())
      LogWarn("can't use the UI in {}: {}", folder, files.error().message);
    else if (files->Contains("/index.html"))
      return [files = std::make_shared<const StaticFiles>(*std::move(files))](const HttpRequest& request) {
        return files->Get(request);
      };
  }
  return [page = NoUiPage(folders)](const HttpRequest& request) {
    if (request.path == "/") return page;
    return ErrorResponse({ErrorCode::kNotFound, fmt::format("there is no page '{}' here", request.path)});
  };
}

}  // namespace gpusonde::server
