#include "cli/commands/standard_input.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/commands/command_line.h"
#include "profiler/ingest/detect.h"
#include "sim/base/file.h"
#include "sim/base/units.h"

namespace rehearse::cli {
namespace {

constexpr const char* kStandardInput = "/dev/stdin";
constexpr rlim_t kLargestRecording = rlim_t{16} << 30;  // a pipe may have no end

std::string error_of_system() {
  return fmt::format("standard input cannot be read: {}", std::strerror(errno));
}

/// Replaces standard input by a file with its contents; returns an error, or nothing.
std::string copy_to_file() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  if (!file) return error_of_system();
  rlimit files{};  // a larger file would end the process
  ::getrlimit(RLIMIT_FSIZE, &files);
  const rlim_t most = std::min(kLargestRecording, files.rlim_cur);
  rlim_t size = 0;
  char block[1 << 16];
  while (const std::size_t n = std::fread(block, 1, sizeof block, stdin)) {
    if ((size += n) > most)
      return fmt::format("standard input is too large; at most {}",
                         to_string(Bytes::b(static_cast<double>(most))));
    if (std::fwrite(block, 1, n, file.get()) != n) return error_of_system();
  }
  if (std::ferror(stdin) != 0 || std::fflush(file.get()) != 0 ||
      ::dup2(::fileno(file.get()), STDIN_FILENO) < 0)
    return error_of_system();
  return "";
}

std::string hold_text(const std::string& name) {
  Result<std::string> text = read_file(kStandardInput);
  if (!text) return to_string(text.error());
  hold_file(name, std::move(*text));
  return "";
}

/// Options whose file is written.
constexpr std::array<std::string_view, 9> kNotRead = {"--output", "--report", "--json",
                                                      "--save",   "--svg",    "--perfetto",
                                                      "--junit",  "--sarif",  "--journal"};

/// Replaces the name by that under which standard input can be read; returns an error, or nothing.
std::string take(std::string& name, bool recording) {
  static bool taken = false;
  if (std::exchange(taken, true))
    return "- is given twice, but standard input can be read only once";
  if (std::string error = copy_to_file(); !error.empty()) return error;
  if (!recording && !ingest::detect_input(kStandardInput)) return hold_text(name);
  name = kStandardInput;
  return "";
}

}  // namespace

void accept_standard_input(CLI::App& command) {
  for (const bool positional : {true, false})
    for (CLI::Option* option : shown_options(command, positional)) {
      const std::string type = option->get_type_name(), name = option->get_name(positional);
      const bool recording = type == "INPUT" || name == "INPUT";
      if (!recording && !type.starts_with("FILE") && name != "FILE") continue;
      if (std::ranges::find(kNotRead, name) != kNotRead.end()) {
        option->check([](const std::string& given) {
          return given == "-" ? "- is no name of a file; --format json writes to standard output"
                              : "";
        });
        continue;
      }
      option->transform(CLI::Validator(
          [recording](std::string& given) { return given == "-" ? take(given, recording) : ""; },
          ""));
    }
  for (CLI::App* sub : command.get_subcommands({})) accept_standard_input(*sub);
}

}  // namespace rehearse::cli
