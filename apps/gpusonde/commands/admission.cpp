// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "admission/webhook.h"
#include "listen_flags.h"
#include "messages.h"
#include "stop_signal.h"
#include "values.h"

namespace gpusonde::app {
namespace {

struct AdmissionFlags {
  std::string listen = "127.0.0.1:7273";
  ListenFlags protection;
  std::string client_ca;
  std::string library = "/opt/gpusonde/lib/libgpusonde-inject.so";
};

Status RunAdmission(const AdmissionFlags& flags, const server::ListenAddress& listen) {
  CatchStopSignals();
  ASSIGN_OR_RETURN(const server::Guard guard, OpenGuard(flags.protection, flags.client_ca));
  ASSIGN_OR_RETURN(const std::unique_ptr<server::HttpServer> webhook,
                   admission::CreateWebhook({.listen = listen, .guard = guard, .library = flags.library}));
  std::thread serving([&webhook] { webhook->Run(); });
  std::string url = webhook->Url();
  url.pop_back();  // its path, "/"
  PrintTo(stdout, "answers admission reviews at {} (press Ctrl-C to stop)\n",
          PlaceOf(fmt::format("{}{}", url, admission::kPath), listen));
  FlushOutput();
  WaitForStopSignal();
  webhook->Stop();
  serving.join();
  return {};
}

// Kubernetes' API server verifies a certificate, so TLS is required. Tokens are not, as an answer reveals
// nothing that isn't in the question.
server::ListenAddress ParseWebhookAddress(const AdmissionFlags& flags) {
  const auto address = server::ParseListenAddress(flags.listen);
  if (!address.has_value()) throw CLI::ValidationError("--listen", address.error().message);
  if (!address->IsLoopback() && flags.protection.certificate.empty())
    throw CLI::ValidationError("--listen", fmt::format("Kubernetes reaches {} by TLS only, so it needs "
                                                       "--tls-cert and --tls-key",
                                                       address->ToText()));
  return *address;
}

// A mount's path must be absolute, and its folder is not to be the root of a container.
std::string CheckLibrary(const std::string& path) {
  const bool good = path.starts_with('/') && path.rfind('/') > 0 && !path.ends_with('/') &&
                    path.find("/../") == std::string::npos && path.find(':') == std::string::npos;
  return good ? "" : fmt::format("'{}' is not the absolute path of a file in a folder", path);
}

}  // namespace

void AddAdmission(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<AdmissionFlags>();
  CLI::App* command =
      app.add_subcommand("admission", "Add the inject library to Kubernetes pods that ask to be profiled");
  command->footer(
      "Example:\n"
      "  gpusonde admission --listen 0.0.0.0:7273 --tls-cert tls.crt --tls-key tls.key\n\n"
      "A mutating admission webhook: containers that ask for a GPU, of pods with the label\n"
      "gpusonde/profile=cuda, get CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH and the library's\n"
      "folder from the node.\n"
      "deploy/kubernetes/README.md says how to install it.");
  AddTlsFlags(*command, flags->protection);
  command
      ->add_option(
          "--tls-client-ca", flags->client_ca,
          "PEM file with the CAs that must have signed the API server's client certificate (mTLS) [none]")
      ->check(Path())
      ->needs(command->get_option("--tls-cert"));
  command->add_option("--listen", flags->listen, "IP:PORT to listen on; port 0: any free port")
      ->capture_default_str();
  command->add_option("--library", flags->library, "Path of the inject library on the nodes")
      ->capture_default_str()
      ->check(CheckLibrary);
  command->callback([flags, &exit_status] {
    const server::ListenAddress listen = ParseWebhookAddress(*flags);
    exit_status = ExitStatusOf("admission", RunAdmission(*flags, listen));
  });
}

}  // namespace gpusonde::app
