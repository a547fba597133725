// rehearse explain: the terms of the glossary, and the keys of a plan.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <strings.h>

#include "cli/catalog/glossary.h"
#include "cli/commands/options.h"
#include "cli/output/document.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct ExplainOptions {
  std::vector<std::string> words;
};

bool alike(const std::string& a, const std::string& b) {
  return ::strcasecmp(a.c_str(), b.c_str()) == 0;
}

std::vector<std::string_view> term_names() {
  std::vector<std::string_view> names;
  for (const GlossaryTerm& term : glossary()) names.push_back(term.name);
  return names;
}

Result<Exit> run(const ExplainOptions& options, const Globals& globals) {
  Document document{.command = "explain", .rows = "terms"};
  const std::string wanted = join(options.words, " ");
  const bool all = wanted.empty();
  Value found = Value::array();
  for (const GlossaryTerm& term : glossary()) {
    if (!all && !alike(term.name, wanted)) continue;
    const std::string name = term.name + ": ";  // which a table has in another column
    const std::string text =
        term.text.starts_with(name) ? term.text.substr(name.size()) : term.text;
    found.push_back({{"term", "term", term.name}, {"text", "meaning", text, {}, kProse}});
    if (!all) document.line(term.text);
  }
  if (found.list().empty())
    return fail(fmt::format("explain: no term '{}'", wanted), {}, suggest(wanted, term_names()));
  document.show("terms", "", found, {}, all ? first(found.list().size()) : kInTables);
  return answer_with(globals, document);
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App& command =
      *app.add_subcommand("explain", "Explain a term of a result, or a key of a plan");
  offer(add_value(command, "TERM", "NAME", options->words,
                  "such as bubble, MFU or interleave (default: list all terms)"),
        term_names);
  command.footer("Example: rehearse explain exposed communication");
  run_by(command, action, options, run);
}

}  // namespace rehearse::cli
