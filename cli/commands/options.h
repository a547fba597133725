// Options of commands: each is declared in one call, and read into a value of its own type.
#pragma once

#include <charconv>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/command_line.h"
#include "cli/commands/commands.h"
#include "cli/commands/name_option.h"
#include "sim/base/largest.h"
#include "sim/base/plain_number.h"

namespace rehearse::cli {

/// The number that an option of this type holds: of an optional or a list, that of its values.
template <class T>
struct NumberIn {
  using Type = T;
};
template <class T>
struct NumberIn<std::optional<T>> : NumberIn<T> {};
template <class T>
struct NumberIn<std::vector<T>> : NumberIn<T> {};
template <class T>
using NumberOf = typename NumberIn<T>::Type;

/// An option check that rejects what the number cannot hold, which the library would round or wrap.
template <class Number>
std::string fits(const std::string& text) {
  Number number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (rest != text.data() + text.size() || error == std::errc::invalid_argument) {
    const std::string meant = plain_number(text);
    return fmt::format("'{}' is not a number{}{}", text, meant.empty() ? "" : "; ", meant);
  }
  const bool sound =
      error == std::errc{} &&
      (std::is_integral_v<Number> || range_missed<double>(static_cast<double>(number)).empty());
  return sound ? "" : fmt::format("'{}' is out of range", text);
}

/// Words of another program or command line, which may be empty.
inline CLI::Option* add_words(CLI::App& command, const char* name, const char* type,
                              std::vector<std::string>& words, std::string what) {
  return command.add_option(name, words, std::move(what))->type_name(type);
}

/// An option check that rejects an empty text, which would otherwise be taken for the default.
inline std::string not_empty(const std::string& text) {
  return text.empty() ? "an empty value; a variable of the shell may not be set" : "";
}

/// "--report FILE   what": a text, a path, a number, or a list of these.
template <class T>
CLI::Option* add_value(CLI::App& command, const char* name, const char* type, T& value,
                       std::string what) {
  CLI::Option* option = command.add_option(name, value, std::move(what))->type_name(type);
  if constexpr (std::is_arithmetic_v<NumberOf<T>>)
    option->check(fits<NumberOf<T>>);
  else
    option->check(not_empty);
  return option;
}

/// A number in a range.
template <class T>
CLI::Option* add_number(CLI::App& command, const char* name, T& value, T least, T most,
                        std::string what) {
  return add_value(command, name, "N", value, std::move(what))
      ->check(CLI::Range(least, most).description(""));
}

template <class T>
struct Chosen {
  using Enum = T;
};
template <class T>
struct Chosen<std::optional<T>> {
  using Enum = T;
};

/// Rejects values that are not among these names, as "unknown KIND 'x'", and lets completion offer
/// them. The names outlive the command.
inline CLI::Option* accept_names(CLI::Option* option, std::span<const std::string_view> names,
                                 const std::string& kind = "name") {
  return offer(option->check(one_of(names, kind)),
               [names] { return std::vector<std::string_view>(names.begin(), names.end()); });
}

/// An option whose value is one of an enumeration's names. The names are in the order of the
/// enumeration and outlive the command; any other value is "unknown KIND 'x'".
template <class T>
CLI::Option* add_choice(CLI::App& command, const char* name, T& value,
                        std::span<const std::string_view> names, std::string what,
                        const std::string& kind = "name") {
  CLI::Option* option = command.add_option_function<std::string>(
      name,
      [&value, names](const std::string& text) {
        value = static_cast<typename Chosen<T>::Enum>(index_of(names, text));
      },
      std::move(what));
  return accept_names(option->type_name("NAME"), names, kind);
}

/// An option whose text `read` parses to a Result; an error of `read` rejects it.
template <class T, class Read>
CLI::Option* add_read(CLI::App& command, const char* name, const char* type, T& value, Read read,
                      std::string what) {
  return command
      .add_option_function<std::string>(
          name, [&value, read](const std::string& text) { value = *read(text); }, std::move(what))
      ->type_name(type)
      ->check(reads_as(read));
}

/// `check` may reject the command line. REQUIRES: the command's options are read into `options`.
template <class Options>
void run_by(CLI::App& command, Action& action, std::shared_ptr<Options> options,
            std::type_identity_t<Result<Exit> (*)(const Options&, const Globals&)> run,
            std::type_identity_t<std::function<void(const Options&)>> check = {}) {
  command.callback([options, run, check, &action] {
    if (check) check(*options);
    action = [options, run](const Globals& globals) { return run(*options, globals); };
  });
}

/// Ends the command with "wrong usage" and the correct usage.
[[noreturn]] inline void wrong_usage(const std::string& what) {
  throw CLI::ValidationError(what, CLI::ExitCodes::ValidationError);
}

}  // namespace rehearse::cli
