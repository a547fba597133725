// Meanings of the keys of files, as the tables of docs/formats state them: those pages are the
// source of the descriptions in schemas.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::cli {

/// A page that describes the keys below a path; "" is the whole file.
struct MeaningPage {
  std::string_view below, page;
};

class Meanings {
 public:
  /// A page is used where those before it do not have the key.
  explicit Meanings(std::span<const MeaningPage> pages);

  /// Of "jobs[].plan", without the marks of Markdown; none if no row is about this key alone. A row
  /// is about it if it names the key with its mapping ("storage.keep") or is below a heading that
  /// names the mapping, and otherwise if it is the only row of the page with this key.
  std::optional<std::string> of(std::string_view path) const;

 private:
  struct Row {
    std::string heading, key, meaning;
    bool first_section;  ///< before any other heading than the title
  };
  struct Page {
    std::string below;
    std::vector<Row> rows;
  };
  std::vector<Page> pages_;
};

}  // namespace rehearse::cli
