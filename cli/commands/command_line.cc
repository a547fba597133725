#include "cli/commands/command_line.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// What asks an offer for its words. No argument of a program holds the byte 0.
const std::string kAsked(1, '\0');

struct Help : CLI::Formatter {
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    // CLI11 prints empty lines before and after a group, hidden ones too.
    for (auto gap = text.find("\n\n\n"); gap != text.npos; gap = text.find("\n\n\n", gap))
      text.erase(gap, 1);
    return text;
  }
  /// Without the options that it needs or excludes: make_option_desc has them.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    return text.substr(0, std::min(text.find(" Needs:"), text.find(" Excludes:")));
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_desc(option);
    const std::string needed = names_of(option->get_needs()),
                      excluded = names_of(option->get_excludes());
    return (needed.empty() ? "" : "with " + needed + ": ") + text +
           (excluded.empty() ? "" : "; not with " + excluded);
  }
  /// CLI11 keeps them in a set of pointers, whose order differs from run to run.
  static std::string names_of(const std::set<CLI::Option*>& options) {
    std::set<std::string> names;
    for (const CLI::Option* other : options) names.insert(other->get_name());
    return join(names, ", ");
  }
  std::string make_footer(const CLI::App* app) const override {
    const bool of_program = !app->get_parent() || app->get_parent()->get_parent();
    const std::string examples = examples_of(*app);
    return (of_program ? "" : "rehearse --help lists the options that all commands share.\n") +
           (examples.empty() ? "" : examples + "\n");
  }
};

/// The option of a command, or one of all commands; null if there is none.
CLI::Option* find_option(CLI::App* command, const std::string& name) {
  for (; command; command = command->get_parent())
    if (CLI::Option* option = command->get_option_no_throw(name)) return option;
  return nullptr;
}

/// A command of a command; null if there is none.
CLI::App* find_command(CLI::App& command, const std::string& name) {
  for (CLI::App* sub : command.get_subcommands({}))
    if (sub->get_name() == name) return sub;
  return nullptr;
}

std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) escaped += "\\&";
    if (c == '-' || c == '\\') escaped += '\\';
    escaped += c == '\\' ? 'e' : c;
  }
  return escaped;
}

/// A heading and paragraphs with a tag each; nothing if there are none.
std::string tagged(std::string_view heading,
                   const std::vector<std::pair<std::string, std::string>>& paragraphs) {
  if (paragraphs.empty()) return "";
  std::string text = fmt::format(".SH {}\n", heading);
  for (const auto& [tag, paragraph] : paragraphs)
    text += fmt::format(".TP\n.B {}\n{}\n", roff(tag), roff(paragraph));
  return text;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::pair<std::string, std::string>> option_paragraphs(CLI::App& command) {
  const Help help;
  std::vector<std::pair<std::string, std::string>> paragraphs;
  for (const bool positional : {true, false})
    for (const CLI::Option* option : shown_options(command, positional))
      paragraphs.push_back(
          {help.make_option_name(option, positional) + help.make_option_opts(option),
           option->get_description()});
  return paragraphs;
}

/// "rehearse calibrate job".
std::string full_name(const CLI::App& command) {
  return command.get_parent() ? "rehearse " + command_words(command) : command.get_name();
}

}  // namespace

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string command_words(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  if (!parent) return "";
  return parent->get_parent() ? command_words(*parent) + " " + command.get_name()
                              : command.get_name();
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<Help>(); }

std::vector<CLI::Option*> shown_options(CLI::App& command, bool positional) {
  return command.get_options([positional](const CLI::Option* option) {
    return !option->get_group().empty() && option->nonpositional() != positional;
  });
}

// An option keeps the words as a check that accepts every argument, because CLI11 has no other place
// for them that help does not show.
CLI::Option* offer(CLI::Option* option, std::function<std::vector<std::string_view>()> words) {
  return option->transform(CLI::Validator(
      [words = std::move(words)](std::string& text) {
        if (text == kAsked) return join(words(), "\n");
        if (const auto name = spelled_alike(text, words())) text = *name;
        return std::string();
      },
      "", "offer"));
}

std::vector<std::string> offered(CLI::Option& option) {
  std::vector<std::string> words;
  try {
    for (int i = 0;; ++i) {
      const CLI::Validator& check = *option.get_validator(i);
      if (check.get_name() != "offer") continue;
      const std::string lines = check(kAsked);
      for (const std::string_view word : split(lines, '\n')) words.emplace_back(word);
    }
  } catch (const CLI::OptionNotFound&) {  // there is no count of checks
  }
  return words;
}

std::vector<Completion> completions(CLI::App& program, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  CLI::App* command = &program;
  CLI::Option* open = nullptr;  // the option whose value comes next
  std::size_t positionals = 0;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return {};  // the words of another program
    if (word == "=") continue;    // bash divides "--format=json" into three words
    if (word.starts_with("-") && word != "-") {
      CLI::Option* option = find_option(command, word);
      open = option && takes_value(*option) ? option : nullptr;
    } else if (open) {
      open = nullptr;
    } else if (CLI::App* sub = find_command(*command, word)) {
      command = sub;
      positionals = 0;
    } else {
      ++positionals;
    }
  }
  std::string begin = words.back() == "=" ? "" : words.back();
  std::string kept;  // what precedes the completed part of the last word
  if (const std::size_t equals = begin.find('='); begin.starts_with("--") && equals != begin.npos) {
    open = find_option(command, begin.substr(0, equals));
    kept = begin.substr(0, equals + 1);
  }
  std::vector<Completion> found;
  if (const char between = open ? open->get_delimiter() : '\0'; between != '\0')
    if (const std::size_t last = begin.rfind(between); last != begin.npos)
      kept = begin.substr(0, last + 1);
  const auto add = [&](std::string word, std::string meaning) {
    if (word = kept + word; upper(word).starts_with(upper(begin)))
      found.push_back({std::move(word), std::move(meaning)});
  };
  if (open) {
    for (std::string& word : offered(*open)) add(std::move(word), "");
  } else if (begin.starts_with("-")) {
    for (CLI::App* app = command; app; app = app->get_parent())
      for (const CLI::Option* option : shown_options(*app, false))
        for (const std::string& name : option->get_lnames())
          add("--" + name, option->get_description());
  } else {
    for (const CLI::App* sub : command->get_subcommands({}))
      add(sub->get_name(), sub->get_description());
    const std::vector<CLI::Option*> places = shown_options(*command, true);
    if (!places.empty())
      for (std::string& word : offered(*places[std::min(positionals, places.size() - 1)]))
        add(std::move(word), "");
  }
  return found;
}

std::filesystem::path installed_files() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "share" / "rehearse";
}

std::string examples_of(const CLI::App& command) {
  std::string text = command.get_footer();
  if (command.get_parent())
    for (const CLI::App* sub : command.get_subcommands({}))
      text += (text.empty() ? "" : "\n") + sub->get_footer();
  std::error_code error;
  for (const char* folder : {"examples", "studies"}) {
    if (std::filesystem::exists(folder, error) ||
        !std::filesystem::exists(installed_files() / folder, error))
      continue;
    const std::string here = fmt::format(" {}/", folder),
                      there = fmt::format(" {}/", (installed_files() / folder).string());
    for (std::size_t at = text.find(here); at != text.npos; at = text.find(here, at + there.size()))
      text.replace(at, here.size(), there);
  }
  return text;
}

std::string man_page(CLI::App& command) {
  const std::string name = full_name(command);
  std::string file = name;
  std::ranges::replace(file, ' ', '-');
  const Help help;
  std::string usage(trim(help.make_usage(&command, name)));
  if (const std::size_t colon = usage.find(": "); colon != usage.npos) usage.erase(0, colon + 2);
  std::string text = fmt::format(".TH {} 1\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n", upper(file),
                                 roff(file), roff(command.get_description()), roff(usage));
  if (const std::string examples = command.get_footer(); !examples.empty())
    text += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(examples));
  text += tagged("OPTIONS", option_paragraphs(command));
  std::vector<std::pair<std::string, std::string>> commands;
  for (const CLI::App* sub : command.get_subcommands({}))
    commands.push_back({sub->get_name(), sub->get_description()});
  text += tagged("COMMANDS", commands);
  for (CLI::App* sub : command.get_subcommands({}))
    if (command.get_parent())
      text += tagged("OPTIONS OF " + upper(sub->get_name()), option_paragraphs(*sub));
  std::string see = command.get_parent() ? ".BR rehearse (1)\n" : "";
  if (!command.get_parent())
    for (const CLI::App* sub : command.get_subcommands({}))
      see += fmt::format(".BR rehearse\\-{} (1)\n", roff(sub->get_name()));
  return text + ".SH SEE ALSO\n" + see;
}

}  // namespace rehearse::cli
