// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "fleet/catalog_file.h"
#include "fleet/observe/identified.h"
#include "fleet/observe/observe.h"
#include "fleet_catalogs.h"
#include "messages.h"
#include "recordings.h"
#include "traces.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kCatalogFooter = R"(
Makes a catalog of applications, by which `gpusonde fleet identify` and the devices of a fleet identify them. All files
of one name are one application's; `gpusonde fleet identify` says which application a recording is most like.

  gpusonde fleet catalog llama=run.sonde resnet=rank0.sqlite resnet=rank1.sqlite -o catalog.json
  gpusonde fleet catalog bert=bert.json.gz --add-to catalog.json -o catalog.json
  gpusonde fleet catalog --streams -o catalog.json      # the programs that gpusonde knows)";

struct CatalogOptions {
  std::vector<std::string> applications;  // NAME=FILE
  std::string add_to;
  std::string output;
  bool streams = false;
  convert::ImportOptions reading{.gpu_only = true};
};

struct NamedFiles {
  std::string name;
  std::vector<std::string> files;
};

// In the order of their first files. Throws CLI::ValidationError for what is not NAME=FILE.
std::vector<NamedFiles> FilesByName(const std::vector<std::string>& arguments) {
  std::vector<NamedFiles> applications;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size())
      throw CLI::ValidationError(fmt::format(
          "'{}' is not NAME=FILE, an application's name and a recording or trace of it", argument));
    const std::string name = argument.substr(0, equals);
    auto found = std::ranges::find(applications, name, &NamedFiles::name);
    if (found == applications.end()) found = applications.insert(found, {.name = name, .files = {}});
    found->files.push_back(argument.substr(equals + 1));
  }
  return applications;
}

// Says which applications the catalog can't tell apart.
void WarnOfLikeness(const fleet::Catalog& catalog, size_t added_from) {
  for (size_t i = added_from; i < catalog.applications.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const fleet::Catalog::Application& one = catalog.applications[j];
      const fleet::Catalog::Application& other = catalog.applications[i];
      const int32_t score = fleet::Score(one.fingerprint, other.fingerprint);
      if (score >= fleet::kUnknownFloor)
        PrintNotice("fleet catalog",
                    fmt::format("{} and {} are alike (score {:.2f}): one may be taken for the other",
                                Printable(one.name), Printable(other.name), fleet::CosineOf(score)));
    }
}

Result<std::string> MakeCatalog(const CatalogOptions& options, const std::vector<NamedFiles>& applications,
                                fleet::Catalog catalog, const std::string& output) {
  const size_t added_from = catalog.applications.size();
  for (const NamedFiles& application : applications) {
    ASSIGN_OR_RETURN(const auto store, OpenRecordings(application.files, options.reading));
    ASSIGN_OR_RETURN(const fleet::Fingerprint fingerprint, fleet::FingerprintOf(*store, {}));
    TRY(AddApplication({.name = application.name, .fingerprint = fingerprint}, catalog));
  }
  WarnOfLikeness(catalog, added_from);
  TRY(WriteReport(fleet::ToJson(catalog) + "\n", output));
  return "";
}

// The catalog that applications are added to.
Result<fleet::Catalog> FirstCatalog(const CatalogOptions& options) {
  fleet::Catalog catalog;
  if (!options.add_to.empty()) {
    ASSIGN_OR_RETURN(catalog, ReadCatalog(options.add_to));
  }
  if (!options.streams) return catalog;
  ASSIGN_OR_RETURN(const fleet::Catalog installed, InstalledCatalog());
  for (const fleet::Catalog::Application& application : installed.applications)
    TRY(AddApplication(application, catalog));
  return catalog;
}

int RunCatalog(const CatalogOptions& options, const std::vector<NamedFiles>& applications) {
  const auto first = FirstCatalog(options);
  if (!first.has_value()) return ExitStatusOf("fleet catalog", Fail(first.error()));
  TraceWork work{
      .command = "fleet catalog",
      .traces = {},
      .output = options.output,
      .apart = true,
      .work = [&](const std::string& output) { return MakeCatalog(options, applications, *first, output); }};
  for (const NamedFiles& application : applications)
    work.traces.insert(work.traces.end(), application.files.begin(), application.files.end());
  return work.traces.empty() ? RunOverTracesHere(work) : RunOverTraces(work);
}

}  // namespace

void AddFleetCatalog(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<CatalogOptions>();
  CLI::App* command = fleet.add_subcommand("catalog", "Make a catalog of applications from recordings");
  command->footer(kCatalogFooter);
  command->add_option("NAME=FILE", options->applications,
                      "An application's name, and a recording or trace of it");
  command->add_flag("--streams", options->streams,
                    "Add the applications whose kernel streams are installed with gpusonde");
  command->add_option("--add-to", options->add_to, "A catalog whose applications come first")->check(Path());
  command->add_option("-o,--output", options->output, "The file to write; default: standard output")
      ->check(Path());
  AddTraceOptions(*command, options->reading);
  command->callback([options, &exit_status] {
    const std::vector<NamedFiles> applications = FilesByName(options->applications);
    if (applications.empty() && !options->streams)
      throw CLI::ValidationError("give applications as NAME=FILE, or --streams");
    exit_status = RunCatalog(*options, applications);
  });
}

}  // namespace gpusonde::app
