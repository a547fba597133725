#include "cli/catalog/glossary.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "cli/catalog/pages.h"
#include "sim/base/text.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {
namespace {

/// Each bold name of a bullet is a term, which the text explains from the last sentence that begins
/// with a bold name up to the next one. The first text ends with "(in …)." if all are printed there.
void add_bullet(std::string_view bullet, std::vector<GlossaryTerm>& terms) {
  std::string_view printed;
  while (!bullet.empty()) {
    constexpr std::string_view kNext = ". **";
    const std::size_t next = bullet.find(kNext);
    const std::string_view own = bullet.substr(0, next == bullet.npos ? next : next + 1);
    std::string text(own);
    if (const std::size_t place = own.find(" (in "); place != own.npos)
      printed = own.substr(place);
    else if (!printed.empty())
      text.replace(text.size() - 1, 1, printed);
    for (std::size_t at = own.find("**"); at != own.npos; at = own.find("**", at)) {
      const std::size_t end = own.find("**", at + 2);
      terms.push_back({std::string(own.substr(at + 2, end - at - 2)), plain_text(text)});
      at = end + 2;
    }
    bullet.remove_prefix(std::min(bullet.size(), own.size() + 1));
  }
}

std::vector<GlossaryTerm> read_glossary() {
  std::vector<GlossaryTerm> terms;
  std::string bullet;
  for (const std::string_view line : split(pages::glossary_md, '\n')) {
    if (line.starts_with("- ")) {
      add_bullet(bullet, terms);
      bullet = line.substr(2);
    } else if (!bullet.empty() && line.starts_with("  ")) {
      bullet.append(" ").append(trim(line));
    }
  }
  add_bullet(bullet, terms);
  using strategies::Section;
  for (const strategies::Field<strategies::Candidate>& field : strategies::plan_fields()) {
    if (field.at.section != Section::kPlan && field.at.section != Section::kTraining) continue;
    const std::string also =
        field.abbreviation.empty() ? "" : fmt::format(", {} in --plan", field.abbreviation);
    terms.push_back({std::string(field.name),
                     fmt::format("{} (key of {} in a job file{}): {}. Values: {}.", field.name,
                                 field.at.section == Section::kPlan ? "plan" : "training", also,
                                 plain_text(field.meaning), strategies::expected_words(field))});
  }
  return terms;
}

}  // namespace

std::string plain_text(std::string_view markdown) {
  std::string text;
  while (!markdown.empty()) {
    if (markdown.starts_with("**")) {
      markdown.remove_prefix(2);
    } else if (markdown.front() == '[') {
      const std::size_t middle = markdown.find("]("), end = markdown.find(')');
      std::string_view page = markdown.substr(middle + 2, end - middle - 2);
      page.remove_prefix(page.rfind('/') + 1);
      text += fmt::format("{} (docs/concepts/{})", markdown.substr(1, middle - 1), page);
      markdown.remove_prefix(end + 1);
    } else {
      text += markdown.front();
      markdown.remove_prefix(1);
    }
  }
  return text;
}

const std::vector<GlossaryTerm>& glossary() {
  static const std::vector<GlossaryTerm> terms = read_glossary();
  return terms;
}

}  // namespace rehearse::cli
