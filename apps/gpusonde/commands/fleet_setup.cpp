// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/fd.h"
#include "base/text.h"
#include "fleet/service/description.h"
#include "fleet/service/keys.h"
#include "fleet_catalogs.h"
#include "live_flags.h"
#include "messages.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kKeygenFooter = R"(
The file holds the secret: whoever has it is that decryptor or authority. The public key, which is printed, goes into
the fleet's description.

  gpusonde fleet keygen -o authority.key
  gpusonde fleet keygen -o decryptor.key)";

constexpr const char* kInitFooter = R"(
Every party of the fleet gets the file and keeps it: keys and rules are never taken from the aggregator. The number that
is printed is the same for all of them; any change of the file makes another fleet. docs/fleet/services.md explains the
rules.

  gpusonde fleet init -o fleet.json --name acme --authority KEY --decryptor acme=KEY --decryptor eff=KEY
  gpusonde fleet init -o fleet.json --name acme --authority KEY --decryptor acme=KEY --catalog catalog.json \
      --cohorts 1 --groups 1 --min-reports 100)";

constexpr const char* kEnrolFooter = R"(
A ticket is the right of one GPU to take part, and its key: send each to its machine, and keep no copy.

  gpusonde fleet enrol --fleet fleet.json --key authority.key --count 8 -o tickets)";

struct InitOptions {
  std::string output;
  std::string authority;
  std::vector<std::string> decryptors;
  std::string catalog;
  fleet::Description fleet;
};

Status Init(const InitOptions& options) {
  fleet::Description fleet = options.fleet;
  if (!fleet::FromHex(options.authority, fleet.authority))
    return Fail(ErrorCode::kInvalidArgument,
                "--authority is not a key of 64 hex digits, as `gpusonde fleet keygen` prints it");
  for (const std::string& text : options.decryptors) {
    const size_t equals = text.rfind('=');
    fleet::Description::Decryptor decryptor;
    if (equals == std::string::npos || !fleet::FromHex(text.substr(equals + 1), decryptor.key))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--decryptor {} is not NAME=KEY, a key of 64 hex digits as `gpusonde fleet "
                              "keygen` prints it",
                              text));
    decryptor.name = text.substr(0, equals);
    fleet.decryptors.push_back(std::move(decryptor));
  }
  ASSIGN_OR_RETURN(fleet.catalog,
                   options.catalog.empty() ? InstalledCatalog() : ReadCatalog(options.catalog));
  const std::string json = ToJson(fleet);
  TRY(fleet::ParseDescription(json));  // what it refuses can't be used
  if (std::error_code ignored; std::filesystem::exists(options.output, ignored))
    return Fail(ErrorCode::kInvalidArgument,
                options.output + " exists, and its fleet may be in use; give another name, or remove it");
  TRY(WriteFileAtomically(options.output, json + "\n"));
  PrintTo(stdout, "{}: fleet {}\n", options.output, ToHex(fleet.Id()));
  return {};
}

void AddKeygen(CLI::App& fleet, int& exit_status) {
  auto output = std::make_shared<std::string>();
  CLI::App* command = fleet.add_subcommand("keygen", "Make the key of a decryptor or of the authority");
  command->footer(kKeygenFooter);
  command->add_option("-o,--output", *output, "The file to make")->check(Path())->required();
  command->callback([output, &exit_status] {
    const auto made = fleet::MakeKeyFile(*output);
    if (made.has_value()) PrintTo(stdout, "{}\n", ToHex(*made));
    exit_status = ExitStatusOf("fleet keygen", made.has_value() ? Status() : Fail(made.error()));
  });
}

void AddInit(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<InitOptions>();
  fleet::Description& made = options->fleet;
  CLI::App* command =
      fleet.add_subcommand("init", "Describe a fleet: who may decrypt and enrol, and the rules");
  command->footer(kInitFooter);
  command->add_option("-o,--output", options->output, "The file to make")->check(Path())->required();
  command->add_option("--name", made.name, "The fleet's name")->required();
  command->add_option("--authority", options->authority, "Public key of the authority, which enrols devices")
      ->required();
  command
      ->add_option(
          "--decryptor", options->decryptors,
          "Name and public key of a decryptor, once for each: all together open sums, and one honest "
          "one protects everybody")
      ->required();
  command
      ->add_option(
          "--catalog", options->catalog,
          "The applications that are told apart (`gpusonde fleet catalog`) [those installed with gpusonde]")
      ->check(Path());
  command->add_option("--period", made.period_s, "Seconds of an epoch, of measurement and of release")
      ->capture_default_str()
      ->check(WholeNumber("S", 1, 31'622'400));
  command->add_option("--groups", made.groups, "Number of groups of characteristics, 1 to 8")
      ->capture_default_str()
      ->check(WholeNumber("N", 1, 8));
  command->add_option("--cohorts", made.cohorts, "Cohorts per group and page of the catalog")
      ->capture_default_str()
      ->check(WholeNumber("N", 1, 10'000));
  command->add_option("--min-reports", made.rules.min_reports, "Smallest cohort whose sum is released")
      ->capture_default_str()
      ->check(WholeNumber("N", 2, 8'000'000));
  command->add_option("--epsilon", made.rules.epsilon, "Privacy budget of a device, over all epochs")
      ->capture_default_str()
      ->check(Number("EPSILON", 0, 1000));
  command->callback([options, &exit_status] { exit_status = ExitStatusOf("fleet init", Init(*options)); });
}

struct EnrolOptions {
  std::string fleet;
  std::string key;
  std::string folder;
  int64_t count = 1;
};

Status Enrol(const EnrolOptions& options) {
  ASSIGN_OR_RETURN(const fleet::Description fleet, fleet::ReadDescription(options.fleet));
  ASSIGN_OR_RETURN(const fleet::SigningKey authority, fleet::ReadKeyFile(options.key));
  if (authority.open() != fleet.authority)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is not the key of the authority that {} names", options.key, options.fleet));
  TRY(MakeFolder(options.folder));
  for (int64_t i = 0; i < options.count; ++i) {
    const fleet::Ticket ticket = fleet::MakeTicket(fleet.Id(), authority);
    TRY(fleet::WriteTicket(fmt::format("{}/{}.ticket", options.folder, fleet::DeviceName(ticket.device)),
                           ticket));
  }
  PrintTo(stdout, "{} in {}\n", Counted(options.count, "ticket"), options.folder);
  return {};
}

void AddEnrol(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<EnrolOptions>();
  CLI::App* command = fleet.add_subcommand("enrol", "Give devices the right to take part");
  command->footer(kEnrolFooter);
  command->add_option("--fleet", options->fleet, "The fleet's description")->check(Path())->required();
  command->add_option("--key", options->key, "The authority's key")->check(Path())->required();
  command->add_option("--count", options->count, "Number of tickets, one for each GPU")
      ->capture_default_str()
      ->check(WholeNumber("N", 1, 10'000'000));
  command->add_option("-o,--output", options->folder, "Folder for the tickets")->check(Path())->required();
  command->callback([options, &exit_status] { exit_status = ExitStatusOf("fleet enrol", Enrol(*options)); });
}

}  // namespace

void AddFleetSetup(CLI::App& fleet, int& exit_status) {
  AddEnrol(fleet, exit_status);
  AddInit(fleet, exit_status);
  AddKeygen(fleet, exit_status);
}

}  // namespace gpusonde::app
