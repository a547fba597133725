// The glossary of the documentation, and the keys of a plan, as terms to explain.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse::cli {

struct GlossaryTerm {
  std::string name;
  std::string text;  ///< a few sentences, which also name the pages with more
};

/// Markdown as plain text. A link is its text and the page, which is one of concepts.
std::string plain_text(std::string_view markdown);

/// The terms of docs/concepts/glossary.md in its order, then the fields of plans and trainings.
const std::vector<GlossaryTerm>& glossary();

}  // namespace rehearse::cli
