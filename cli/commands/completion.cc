// rehearse completion: the completion of command lines in a shell. The script of each shell asks
// this program for the words, so that they are those of its options and of its catalog.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/output/document.h"

namespace rehearse::cli {
namespace {

enum class Shell { kBash, kZsh, kFish };
constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};

// Where the program offers nothing, the shells complete names of files.
constexpr std::array<std::string_view, 3> kScripts = {
    R"(# Completion of rehearse in bash: source it, or install it in bash-completion/completions.
_rehearse() {
  local IFS=$'\n'
  COMPREPLY=($("$1" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _rehearse rehearse
)",
    R"(#compdef rehearse
# Completion of rehearse in zsh: install it as _rehearse in a folder of $fpath.
_rehearse() {
  local -a found
  found=("${(@f)$("${words[1]}" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then
    _describe 'rehearse' found
  else
    _files
  fi
}
if [[ "${funcstack[1]}" = "_rehearse" ]]; then _rehearse "$@"; else compdef _rehearse rehearse; fi
)",
    R"(# Completion of rehearse in fish: install it in vendor_completions.d.
function __rehearse_words
  set -l given (commandline -opc)
  set -l current (commandline -ct)
  set -l found ($given[1] completion fish -- $given[2..] "$current" 2>/dev/null)
  test -n "$found"; and printf '%s\n' $found
end
# Without words fish completes names of files, as it does by itself.
complete -c rehearse -f -n '__rehearse_words >/dev/null' -a '(__rehearse_words)'
)"};

struct CompletionOptions {
  Shell shell = Shell::kBash;
  std::vector<std::string> words;
};

/// A completion as the shell's script reads it.
std::string line_of(Shell shell, const Completion& completion) {
  if (shell == Shell::kBash) return completion.word + "\n";
  if (shell == Shell::kFish) return completion.word + "\t" + completion.meaning + "\n";
  std::string line;
  for (const char c : completion.word) line += c == ':' ? "\\:" : std::string(1, c);
  return line + (completion.meaning.empty() ? "\n" : ":" + completion.meaning + "\n");
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompletionOptions>();
  CLI::App& command =
      *app.add_subcommand("completion", "Write the script that completes commands in a shell");
  add_choice(command, "SHELL", options->shell, kShells, "bash, zsh or fish", "shell")->required();
  add_words(command, "WORD", "", options->words,
            "after --: what follows rehearse so far, to list the words that may be last");
  command.footer(
      "Examples:\n"
      "  source <(rehearse completion bash)\n"
      "  rehearse completion zsh > ~/.zfunc/_rehearse\n"
      "  rehearse completion fish > ~/.config/fish/completions/rehearse.fish");
  command.callback([&app, &action, options] {
    action = [&app, options](const Globals& globals) -> Result<Exit> {
      std::string text;
      if (options->words.empty())
        text = kScripts[static_cast<std::size_t>(options->shell)];
      else
        for (const Completion& completion : completions(app, options->words))
          text += line_of(options->shell, completion);
      TRY(write_text(globals, text));
      return Exit::kSuccess;
    };
  });
}

}  // namespace rehearse::cli
