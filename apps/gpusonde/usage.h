// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
class ParseError;
}  // namespace CLI

namespace gpusonde::app {

// Formats --help: wrapped to the terminal's width, each value name and default shown once.
std::shared_ptr<CLI::FormatterBase> HelpFormatter();

// CLI11 takes whatever follows an option for its value. Of `record -o -- true`, where the file was forgotten,
// and `record -o -p 4711` that must not be the next option or the separator.
void RefuseOptionsAsValues(CLI::App& app);

// Explains why `app` could not parse the command line: the command, the error and what is possible instead.
// `has_separator`: whether the command line has a --. Ends with a line feed.
std::string ExplainUsage(const CLI::App& app, const CLI::ParseError& error, bool has_separator);

// Lists the subcommands of `app`, for a command line without one.
std::string ListCommands(const CLI::App& app);

}  // namespace gpusonde::app
