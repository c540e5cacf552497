// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>

#include "base/result.h"
#include "server/http_message.h"

namespace gpusonde::server {

// The files of a folder, read into memory once. Only these exist, so no path can leave the folder. Immutable,
// thread-safe.
class StaticFiles {
 public:
  // Reads the folder and its subfolders; skips symbolic links and files that begin with '.'. Errors:
  // kNotFound if it isn't a folder; kUnsupported above 64 MiB, so that a wrong folder doesn't fill memory;
  // kIo, kPermissionDenied.
  static Result<StaticFiles> Load(const std::string& folder);

  bool Contains(const std::string& path) const { return files_.contains(path); }

  // The file at the request's path; index.html for "/". 304 if the client has it, 404 if there is none.
  // Clients may cache files with a content hash in their name ("index-BkhWs4p3.js", as Vite writes them) for
  // ever and must revalidate others.
  HttpResponse Get(const HttpRequest& request) const;

 private:
  struct File {
    std::shared_ptr<const std::string> content;
    std::shared_ptr<const std::string> gzipped;  // null if that isn't smaller
    std::string type;
    std::string etag;
    bool is_hashed = false;
  };
  static File Prepare(const std::string& name, std::string content);

  std::unordered_map<std::string, File> files_;  // by path: "/assets/index.js"
};

}  // namespace gpusonde::server
