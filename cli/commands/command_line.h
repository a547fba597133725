// The command line as a tree of commands and options, for what is derived from it: help, man pages,
// completion.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace rehearse::cli {

/// Formats help without the groups of former names, which are hidden. That of a command refers to
/// the options of all commands.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// The folder share/rehearse that was installed with the program; it may be absent.
std::filesystem::path installed_files();

/// The examples of a command. Their files are the installed ones, unless the current folder has some.
std::string examples_of(const CLI::App& command);

/// The options that help shows, of one kind: positional or named.
std::vector<CLI::Option*> shown_options(CLI::App& command, bool positional);

/// Lets completion offer these words as values, and takes other spellings of one (spelled_alike) for it.
/// They are made when they are asked for: every command
/// starts with the options of all commands, and the names of all models take longer than the rest.
/// The texts that the views refer to must outlive the option.
CLI::Option* offer(CLI::Option* option, std::function<std::vector<std::string_view>()> words);
std::vector<std::string> offered(CLI::Option& option);

/// A word that may follow a command line.
struct Completion {
  std::string word;
  std::string meaning;
};
/// The words that may take the place of the last of `words`, which follow the program's name; that
/// one may be empty. None where a file or free text may follow.
std::vector<Completion> completions(CLI::App& program, const std::vector<std::string>& words);

/// Whether it is not a flag.
bool takes_value(const CLI::Option& option);
/// "calibrate job": a command with those that contain it, without the program.
std::string command_words(const CLI::App& command);

/// The manual page of a command with its own commands, or of the program: the source for roff.
std::string man_page(CLI::App& command);

}  // namespace rehearse::cli
