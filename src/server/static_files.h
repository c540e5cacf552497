// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>

#include "base/result.h"
#include "server/http_message.h"

namespace gpusonde::server {

// The files of a folder, read into memory once; what was not there then doesn't exist, so that no path leads
// out of the folder. Immutable, thread-safe.
class StaticFiles {
 public:
  // Reads the folder with those inside; symbolic links and files that begin with '.' are passed over. Errors:
  // kNotFound for what is no folder; kUnsupported above 64 MiB, so that a wrong folder doesn't fill memory;
  // kIo, kPermissionDenied.
  static Result<StaticFiles> Load(const std::string& folder);

  bool Contains(const std::string& path) const { return files_.contains(path); }

  // The file at the request's path; index.html for "/". 304 when the client has it, 404 when there is none.
  // Files whose name holds a hash of their content ("index-BkhWs4p3.js", as Vite writes them) may be kept by
  // the client for ever, others are asked for again.
  HttpResponse Get(const HttpRequest& request) const;

 private:
  struct File {
    std::shared_ptr<const std::string> content;
    std::shared_ptr<const std::string> gzipped;  // null where that isn't smaller
    std::string type;
    std::string etag;
    bool is_hashed = false;
  };
  static File Prepare(const std::string& name, std::string content);

  std::unordered_map<std::string, File> files_;  // by path: "/assets/index.js"
};

}  // namespace gpusonde::server
