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
  /// is about it if it names the key with its mapping ("storage.keep"); else if the heading of its
  /// section or column names the innermost of the mappings around it ("key of `stream`"); else if it is
  /// the only row with this key, where keys of the whole file are in the first section.
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
