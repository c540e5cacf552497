// SPDX-License-Identifier: Apache-2.0
#include "usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/display_width.h"
#include "base/printable.h"
#include "base/shell_word.h"
#include "base/terminal.h"
#include "base/text.h"

namespace gpusonde::app {
namespace {

constexpr size_t kDescriptionColumn = 30;
// Lines longer than this are hard to read, however wide the terminal is.
constexpr size_t kMaxHelpWidth = 110;

size_t HelpWidth() {
  const size_t width = Terminal::Of(STDOUT_FILENO).width;
  return width == 0 ? kMaxHelpWidth : std::min(width, kMaxHelpWidth);
}

// The text of an option whose own name says how often it may be given, as "FILE... SQL".
constexpr std::string_view kNamesAll = " ";

// What options that take text take; an option means the same in all commands. Others: TEXT.
constexpr std::pair<std::string_view, std::string_view> kTextValues[] = {
    {"--add-to", "FILE"},
    {"--aggregator", "URL"},
    {"--authority", "KEY"},
    {"--by", "KEY"},
    {"--catalog", "FILE"},
    {"--cri-socket", "SOCKET"},
    {"--decryptor", "NAME=KEY"},
    {"--fleet", "FILE"},
    {"--host", "HOST"},
    {"--hosts", "HOSTS"},
    {"--html", "FILE"},
    {"--interval", "TIME"},
    {"--key", "FILE"},
    {"--kubelet-socket", "SOCKET"},
    {"--library", "FILE"},
    {"--listen", "ADDRESS"},
    {"--live", "URL"},
    {"--merge", "FILE"},
    {"--metrics-listen", "ADDRESS"},
    {"--name", "NAME"},
    {"--otlp", "URL"},
    {"--otlp-headers", "FILE"},
    {"--otlp-tls-ca", "FILE"},
    {"--output", "FILE"},
    {"--pages-listen", "ADDRESS"},
    {"--pod-labels", "LABELS"},
    {"--relabel", "FILE"},
    {"--server", "URL"},
    {"--sources", "FOLDER"},
    {"--state", "FOLDER"},
    {"--steps", "PREFIX"},
    {"--streams", "FOLDER"},
    {"--ticket", "FILE"},
    {"--tls-ca", "FILE"},
    {"--tls-cert", "FILE"},
    {"--tls-client-ca", "FILE"},
    {"--tls-key", "FILE"},
    {"--token-file", "FILE"},
    {"--tokens", "FILE"},
    {"--up", "URL"},
    {"--up-token-file", "FILE"},
    {"--url", "URL"},
    {"--webhook", "URL"},
};

std::string NameOfText(const CLI::Option& option) {
  const std::string name = option.get_name();  // with two dashes, if it has such a name
  const auto* const found =
      std::ranges::find(kTextValues, name, [](const auto& value) { return value.first; });
  return std::string(found == std::end(kTextValues) ? "TEXT" : found->second);
}

// The name of an option's value. CLI11 gives "TEXT:text|json": its own type name, then the validator's label.
std::string ValueName(const CLI::Option& option) {
  std::string name = option.get_type_name();
  if (const size_t colon = name.find(':'); colon != std::string::npos) name.erase(0, colon + 1);
  if (name == "TEXT") return NameOfText(option);
  return name == "INT" || name == "UINT" || name == "FLOAT" ? "N" : name;
}

// An indented line. A command stays whole, so that it can be copied: the comment behind it moves closer or
// below it, or the terminal breaks the line.
std::string FitExample(std::string_view line, size_t width) {
  constexpr size_t kIndent = 6;
  if (DisplayWidth(line) <= width) return std::string(line);
  if (!line.contains("gpusonde ")) return Wrap(line, width, kIndent);
  const size_t comment = line.find("  # ");
  if (comment == std::string_view::npos) return std::string(line);
  const std::string_view command = line.substr(0, line.find_last_not_of(' ', comment) + 1);
  const std::string_view text = line.substr(comment + 2);
  if (const std::string beside = fmt::format("{}  {}", command, text); DisplayWidth(beside) <= width)
    return beside;
  const std::string below = fmt::format("{:{}}{}", "", kIndent, text);
  return fmt::format("{}\n{}", command, Wrap(below, width, kIndent + 2));
}

// Joins and wraps the lines of paragraphs; those of examples and lists are indented.
std::string Reflow(std::string_view text, size_t width) {
  std::string reflown, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) reflown += Wrap(std::exchange(paragraph, {}), width, 0) + "\n";
  };
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (!line.empty() && !line.starts_with(' ')) {
      if (!paragraph.empty()) paragraph += ' ';
      paragraph += line;
      continue;
    }
    end_paragraph();
    reflown += FitExample(line, width) + "\n";
  }
  end_paragraph();
  return reflown;
}

// "gpusonde fleet simulate"; CLI11 only knows a command's last name.
std::string FullName(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : FullName(*command.get_parent()) + " " + command.get_name();
}

class Formatter : public CLI::Formatter {
 public:
  Formatter() { label("Positionals", "Arguments"); }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (!option->get_option_text().empty()) return " " + option->get_option_text();
    if (option->get_type_size() == 0) return "";
    return (option->get_positional() ? "" : " " + ValueName(*option)) +
           (option->get_expected_max() == CLI::detail::expected_max_vector_size ? " ..." : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const bool must_be_given = option->get_required() && !option->get_positional();
    const std::string fallback = must_be_given ? "required" : option->get_default_str();
    return option->get_description() + (fallback.empty() ? "" : fmt::format(" [{}]", fallback));
  }

  // CLI11 writes the group's name, whatever its label.
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_subcommands(app, mode), "\nSubcommands:\n",
                                         "\nCommands:\n");
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }

  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    std::string usage = fmt::format("Usage: {} [OPTIONS]", FullName(*app));
    for (const CLI::Option* option :
         app->get_options([](const CLI::Option* each) { return each->get_positional(); }))
      usage +=
          " " + (option->get_option_text() == kNamesAll ? option->get_name(true) : make_option_usage(option));
    if (!app->get_subcommands({}).empty()) usage += " COMMAND";
    return Wrap(usage, HelpWidth(), 7) + "\n";
  }

  std::string make_footer(const CLI::App* app) const override {
    std::string text = CLI::Formatter::make_footer(app);
    text.erase(0, std::min(text.find_first_not_of('\n'), text.size()));  // CLI11 puts an empty line above
    return Terminal::Of(STDOUT_FILENO).width == 0 ? text : Reflow(text, HelpWidth());
  }

 private:
  static std::string Entry(const std::string& name, const std::string& description) {
    std::string text = "  " + name;
    if (CountCharacters(text) + 2 > kDescriptionColumn) text += "\n";
    const size_t column = text.ends_with('\n') ? 0 : CountCharacters(text);
    text.append(kDescriptionColumn - column, ' ');
    return Wrap(text + description, HelpWidth(), kDescriptionColumn) + "\n";
  }
};

// The innermost subcommand given on the command line.
const CLI::App& ChosenCommand(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().back();
  return *chosen;
}

// The Levenshtein distance, but two neighbours that are swapped ("veiw") are one mistake.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows.back().back();
}

// The known word closest to `word`, if it is close enough to be a typo.
std::optional<std::string> Similar(std::string_view word, const std::vector<std::string>& known) {
  if (known.empty()) return std::nullopt;
  const auto distance = [&](const std::string& each) { return Distance(word, each); };
  const auto nearest = std::ranges::min_element(known, {}, distance);
  return distance(*nearest) <= std::max<size_t>(1, nearest->size() / 3) ? std::optional(*nearest)
                                                                        : std::nullopt;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known) {
  const std::optional<std::string> similar = Similar(word, known);
  return similar.has_value() ? fmt::format("; did you mean {}?", *similar) : "";
}

std::string ExplainOption(const CLI::App& command, const std::string& option, bool has_separator) {
  const std::string similar =
      DidYouMean(std::string_view(option).substr(0, option.find('=')), OptionNames(command));
  // Without --, the option was probably meant for the program to run.
  const CLI::Option* program = command.get_option_no_throw("COMMAND");
  if (similar.empty() && !has_separator && program != nullptr && program->count() > 0)
    return fmt::format("unknown option {}; put -- before the program to run, and its options after it",
                       option);
  return fmt::format("unknown option {}{}", option, similar);
}

std::string ExplainExtras(const CLI::App& command, const std::vector<std::string>& words,
                          bool has_separator) {
  const auto is_option = [](const std::string& word) { return word.starts_with("-"); };
  // What follows a wrong command may be right.
  if (!command.get_subcommands({}).empty() && !is_option(words.front())) {
    std::error_code ignored;
    if (command.get_parent() == nullptr && std::filesystem::is_regular_file(words.front(), ignored))
      return fmt::format("{} is a file; a command comes before it, as in `gpusonde view {}`", words.front(),
                         ShellWord(words.front()));
    return fmt::format("unknown command {}{}", words.front(),
                       DidYouMean(words.front(), CommandNames(command)));
  }
  const auto option = std::ranges::find_if(words, is_option);
  if (option != words.end()) return ExplainOption(command, *option, has_separator);
  return fmt::format("unexpected argument {}", words.front());
}

std::string Explain(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error,
                    bool has_separator) {
  const std::vector<std::string> extras = app.remaining(true);
  // A wrong command also leaves out the one that is required.
  const bool no_command = command.get_require_subcommand_min() > 0 && command.get_subcommands().empty();
  if ((no_command || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) && !extras.empty())
    return ExplainExtras(command, extras, has_separator);
  if (no_command) return fmt::format("no command was given: {}", fmt::join(CommandNames(command), ", "));
  std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = text.substr(0, text.find(':'));
    const CLI::Option* const without_value = command.get_option_no_throw(name);
    if (without_value == nullptr || without_value->get_type_size() == 0) return text;
    if (without_value->count() > 1) return name + " is given more than once";
    return fmt::format("{} needs a value: {}", name,
                       CLI::detail::find_and_replace(ValueName(*without_value), "|", ", "));
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return text;
  const CLI::Option* missing = command.get_option_no_throw(text.substr(0, text.find(' ')));
  if (missing == nullptr || missing->get_type_name().find('|') == std::string::npos) return text;
  return text + ": " + CLI::detail::find_and_replace(ValueName(*missing), "|", ", ");
}

}  // namespace

void RefuseOptionsAsValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_type_size() == 0) continue;
    option->check([&app, option](const std::string& value) {
      const bool is_option = value.starts_with('-') && app.get_option_no_throw(value) != nullptr;
      if (value != "--" && !is_option) return std::string();
      return fmt::format("a value is missing before {}: {}", value, ValueName(*option));
    });
  }
  for (CLI::App* command : app.get_subcommands({})) RefuseOptionsAsValues(*command);
}

std::shared_ptr<CLI::FormatterBase> HelpFormatter() { return std::make_shared<Formatter>(); }

std::string ExplainUsage(const CLI::App& app, const CLI::ParseError& error, bool has_separator) {
  const CLI::App& command = ChosenCommand(app);
  const std::string name = FullName(command);
  const std::string head = Terminal::Of(STDERR_FILENO).Paint(Style::kBold, name + ":");
  return fmt::format("{} {}\nRun `{} --help` for {}.\n", head,
                     Printable(Explain(app, command, error, has_separator)), name,
                     command.get_subcommands({}).empty() ? "its options" : "the commands");
}

std::string ListCommands(const CLI::App& app) {
  size_t width = 0;
  const std::vector<std::string> names = CommandNames(app);
  for (const std::string& name : names) width = std::max(width, name.size());
  const std::string path = FullName(app);
  std::string text = fmt::format("{}: no command was given. Commands:\n", path);
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_group().empty())
      text += fmt::format("  {:<{}}  {}\n", command->get_name(), width, command->get_description());
  text = Wrap(text, Terminal::Of(STDERR_FILENO).width, width + 4);
  return text + fmt::format("Run `{} COMMAND --help` for one of them.\n", path);
}

}  // namespace gpusonde::app
