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

// How --help looks: fitted to the terminal, values and defaults named once.
std::shared_ptr<CLI::FormatterBase> HelpFormatter();

// What is wrong with the command line that `app` could not parse, for which command, and what is possible
// instead. Ends with a line feed.
std::string ExplainUsage(const CLI::App& app, const CLI::ParseError& error);

// The commands of `app` (or of a command of it), for somebody who named none.
std::string ListCommands(const CLI::App& app);

}  // namespace gpusonde::app
