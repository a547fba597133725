// rehearse help: examples and options of a command, and manual pages.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/output/document.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct HelpOptions {
  std::vector<std::string> command;
  std::filesystem::path man;
};

/// The command with these names, one within the other.
Result<CLI::App*> find_command(CLI::App& program, const std::vector<std::string>& names) {
  CLI::App* command = &program;
  for (const std::string& name : names) {
    std::vector<std::string> known;
    for (CLI::App* sub : command->get_subcommands({})) known.push_back(sub->get_name());
    const auto at = std::ranges::find(known, name);
    if (at == known.end()) {
      const std::vector<std::string_view> views(known.begin(), known.end());
      return fail(fmt::format("help: unknown command '{}'", name), {}, suggest(name, views));
    }
    command = command->get_subcommand(name);
  }
  return command;
}

/// The examples first, then the options. CLI::App::help would show those of the parsed command.
std::string help_text(CLI::App& command) {
  const std::string examples = examples_of(command);
  command.footer("");
  return (examples.empty() ? "" : examples + "\n\n") +
         command.get_formatter()->make_help(&command, command.get_name(),
                                            CLI::AppFormatMode::Normal);
}

/// The options that help shows, as programs read them.
Value option_fields(CLI::App& command) {
  Value list = Value::array();
  for (const bool positional : {true, false})
    for (CLI::Option* option : shown_options(command, positional)) {
      const std::string name = positional ? option->get_name() : option->get_lnames().front();
      list.push_back(
          {{"name", name},
           {"positional", positional},
           {"value", takes_value(*option) ? Value(option->get_type_name()) : Value(std::nullopt)},
           {"repeated", option->get_expected_max() > 1},
           {"required", option->get_required()},
           {"words", offered(*option)},
           {"meaning", option->get_description()}});
    }
  return list;
}

/// Adds the command, or those that it consists of.
void add_fields(CLI::App& command, Value& list) {
  if (command.get_parent() && command.get_subcommands({}).empty())
    list.push_back({{"name", command_words(command)},
                    {"meaning", command.get_description()},
                    {"examples", command.get_footer()},
                    {"options", option_fields(command)}});
  for (CLI::App* sub : command.get_subcommands({})) add_fields(*sub, list);
}

/// The command line of a command, for programs; and the options of all commands.
Document command_lines(CLI::App& program, CLI::App& command) {
  Document document{.command = "help", .rows = "commands"};
  add_fields(command, document["commands"]);
  document["options"] = option_fields(program);
  return document;
}

Status write_pages(CLI::App& program, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail_in(folder, "cannot be made: " + error.message(), "a folder to write to");
  TRY(write_file(folder / "rehearse.1", man_page(program)));
  for (CLI::App* command : program.get_subcommands({}))
    TRY(write_file(folder / fmt::format("rehearse-{}.1", command->get_name()), man_page(*command)));
  return {};
}

}  // namespace

void add_help(CLI::App& app, Action& action) {
  auto options = std::make_shared<HelpOptions>();
  CLI::App& command =
      *app.add_subcommand("help", "Show examples and options of a command, or write manual pages");
  offer(add_value(command, "COMMAND", "NAME", options->command, "a command, such as plan"), [&app] {
    std::vector<std::string_view> names;
    for (const CLI::App* other : app.get_subcommands({})) names.push_back(other->get_name());
    return names;
  });
  add_value(command, "--man", "FOLDER", options->man, "write the manual page of each command");
  command.footer("Example: rehearse help plan");
  command.callback([&app, &action, options] {
    if (!options->command.empty() && !options->man.empty())
      wrong_usage("--man writes the pages of all commands, and takes no COMMAND");
    action = [&app, options](const Globals& globals) -> Result<Exit> {
      if (!options->man.empty()) {
        TRY(write_pages(app, options->man));
        return Exit::kSuccess;
      }
      CLI::App& asked = *TRY(find_command(app, options->command));
      if (globals.format == Format::kJson) return answer_with(globals, command_lines(app, asked));
      TRY(write_text(globals, help_text(asked)));
      return Exit::kSuccess;
    };
  });
}

}  // namespace rehearse::cli
