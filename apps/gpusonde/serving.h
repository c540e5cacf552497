// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

#include "server/http_server.h"

namespace gpusonde::app {

// Runs an HTTP server on a thread of its own.
class Serving {
 public:
  explicit Serving(server::HttpServer& server) : server_(server), thread_([&server] { server.Run(); }) {}
  ~Serving() {
    server_.Stop();
    thread_.join();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  server::HttpServer& server_;
  std::thread thread_;
};

}  // namespace gpusonde::app
