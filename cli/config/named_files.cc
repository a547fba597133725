#include "cli/config/named_files.h"

#include <set>

#include "sim/base/file.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

/// The possible values in a text: words between blanks and the marks of YAML, and quoted texts as a
/// whole.
std::set<std::string> values_in(std::string_view text) {
  std::set<std::string> words;
  const auto add_parts = [&words](std::string_view from, std::string_view marks) {
    while (!from.empty()) {
      const std::size_t end = std::min(from.find_first_of(marks), from.size());
      if (end > 0) words.emplace(from.substr(0, end));
      from.remove_prefix(std::min(end + 1, from.size()));
    }
  };
  add_parts(text, " \t\r\n,[]{}\"'#");
  add_parts(text, "\"\n");
  add_parts(text, "'\n");
  return words;
}

/// "traces/a.json", but not "ethernet" or "...".
bool may_name_a_file(const std::string& word) {
  return word.find_first_of("./") != std::string::npos &&
         word.find_first_not_of("./ ") != std::string::npos;
}

class Adder {
 public:
  Adder(work::Fingerprint& fingerprint, const Spellings& spellings)
      : fingerprint_(fingerprint), spellings_(spellings) {}

  Status add(const fs::path& path) {
    std::error_code error;
    if (!seen_.insert(fs::weakly_canonical(path, error)).second) return {};
    TRY(fingerprint_.add_file(path));
    const std::string extension = path.extension();
    if (extension != ".yaml" && extension != ".yml") return {};
    const std::string text = TRY(read_file(path));
    for (const std::string& word : values_in(text)) {
      if (word.find('$') == std::string::npos) {
        TRY(add_named(path.parent_path(), word));
      } else if (spellings_) {
        for (const std::string& filled : spellings_(word))
          TRY(add_named(path.parent_path(), filled));
      }
    }
    return {};
  }

  Status add_named(const fs::path& folder, const std::string& word) {
    std::error_code error;
    if (!may_name_a_file(word)) return {};
    const fs::file_status status = fs::status(folder / word, error);
    if (error || (!fs::is_regular_file(status) && !fs::is_directory(status))) return {};
    return add(folder / word);
  }

 private:
  work::Fingerprint& fingerprint_;
  const Spellings& spellings_;
  std::set<fs::path> seen_;
};

}  // namespace

Status add_with_named_files(work::Fingerprint& fingerprint, const fs::path& path,
                            const Spellings& spellings) {
  return Adder(fingerprint, spellings).add(path);
}

Status add_named_file(work::Fingerprint& fingerprint, const fs::path& folder,
                      const std::string& word) {
  const Spellings none;
  return Adder(fingerprint, none).add_named(folder, word);
}

}  // namespace rehearse::cli
