// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal.h"
#include "fleet/observe/identified.h"
#include "fleet/observe/observe.h"
#include "fleet_catalogs.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "selection_flags.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kIdentifyFooter = R"(
Finds for each GPU the application of a catalog whose kernels are most like those that ran on it. Without --catalog that
is one of the few programs whose kernel streams are installed with gpusonde; `gpusonde fleet catalog` makes others.
docs/fleet/identify.md says how it works.

  gpusonde fleet identify run.sonde
  gpusonde fleet identify rank*.sqlite --catalog catalog.json
  gpusonde fleet identify day.sonde --from 2026-11-24T09:00:00 --to 2026-11-24T10:00:00 --format json)";

struct IdentifyOptions {
  std::vector<std::string> files;
  std::string catalog;
  std::string format = "text";
  SelectionFlags selection;
  convert::ImportOptions reading{.gpu_only = true};
};

Status Identify(const IdentifyOptions& options, const fleet::Catalog& catalog) {
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(options.files, options.reading));
  ASSIGN_OR_RETURN(const model::Selection selection, Select(*store, options.selection));
  ASSIGN_OR_RETURN(const fleet::Observations observations, fleet::Observe(*store, selection));
  const std::string named = options.catalog.empty() ? ", those installed with gpusonde" : "";
  if (options.format == "json")
    PrintTo(stdout, "{}\n", fleet::IdentifiedJson(catalog, observations.gpus));
  else
    PrintTo(stdout, "{}",
            fleet::IdentifiedText(catalog, observations.gpus, named, Terminal::Of(STDOUT_FILENO)));
  return {};
}

}  // namespace

void AddFleetIdentify(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<IdentifyOptions>();
  CLI::App* command = fleet.add_subcommand("identify", "Find which application ran on each GPU");
  command->footer(kIdentifyFooter);
  command->add_option("FILE", options->files, "Recordings or traces, read as one")->check(Path())->required();
  command
      ->add_option("--catalog", options->catalog,
                   "The catalog of applications; default: those installed with gpusonde")
      ->check(Path());
  command->add_option("--format", options->format, "text or json")
      ->capture_default_str()
      ->check(OneOf({"text", "json"}));
  AddTimeFlags(*command, options->selection);
  AddTraceOptions(*command, options->reading);
  command->callback([options, &exit_status] {
    const auto catalog = options->catalog.empty() ? InstalledCatalog() : ReadCatalog(options->catalog);
    if (!catalog.has_value()) {
      exit_status = ExitStatusOf("fleet identify", Fail(catalog.error()));
      return;
    }
    exit_status = RunReader({.command = "fleet identify", .files = options->files, .work = [&] {
                               return ExitStatusOf("fleet identify", Identify(*options, *catalog));
                             }});
  });
}

}  // namespace gpusonde::app
