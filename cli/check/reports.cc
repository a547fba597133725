#include "cli/check/reports.h"

#include <cctype>
#include <sstream>

#include <boost/property_tree/xml_parser.hpp>
#include <fmt/core.h>

#include "cli/output/json.h"
#include "sim/base/utf8.h"

namespace rehearse::cli {
namespace {

using compare::Verdict;

/// Text of an element or an attribute, which the writer escapes. Characters that XML cannot
/// represent become spaces.
std::string writable(std::string_view given) {
  std::string text = printable(given);
  for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})  // U+FFFE, U+FFFF
    for (std::size_t at = 0; (at = text.find(none, at)) != std::string::npos;)
      text.replace(at, none.size(), " ");
  return text;
}

/// The value of a workflow command, or of one of its properties.
std::string command_text(std::string_view text, bool property) {
  std::string safe;
  for (const char c : text)
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
      safe += fmt::format("%{:02X}", static_cast<unsigned>(c));
    else
      safe += c;
  return safe;
}

/// A path as a URI reference: relative where it is.
std::string uri(std::string_view path) {
  constexpr std::string_view kPlain = "-._~/";
  std::string safe;
  for (const char c : path)
    if (std::isalnum(static_cast<unsigned char>(c)) || kPlain.find(c) != std::string_view::npos)
      safe += c;
    else
      safe += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return safe;
}

std::size_t count(const CheckFindings& findings, Verdict verdict) {
  std::size_t n = 0;
  for (const CheckFinding& f : findings.judged) n += f.verdict == verdict;
  return n;
}

struct Rule {
  const char *id, *level, *about;
};
constexpr Rule kFailed{"rehearse/fail", "error", "A measured quantity is above its limit."};
constexpr Rule kUnsure{"rehearse/inconclusive", "warning",
                       "Too few steps to distinguish a change as large as the limit from noise."};
constexpr Rule kChanged{"rehearse/changed", "note",
                        "A quantity without a limit changed significantly."};

}  // namespace

std::string junit_xml(const CheckFindings& findings) {
  namespace tree = boost::property_tree;
  tree::ptree suite, suites, document;
  suite.put("<xmlattr>.name", "rehearse check");
  for (tree::ptree* counted : {&suites, &suite}) {
    counted->put("<xmlattr>.tests", findings.judged.size());
    counted->put("<xmlattr>.failures", count(findings, Verdict::kFail));
    counted->put("<xmlattr>.errors", 0);
    counted->put("<xmlattr>.skipped", count(findings, Verdict::kInconclusive));
  }
  for (const CheckFinding& f : findings.judged) {
    tree::ptree& test = suite.add("testcase", "");
    test.put("<xmlattr>.classname", "rehearse.check");
    test.put("<xmlattr>.name", writable(f.name));
    if (f.verdict == Verdict::kInconclusive)
      test.put("skipped.<xmlattr>.message", writable(f.message));
    if (f.verdict != Verdict::kFail) continue;
    tree::ptree& failure = test.add("failure", writable(f.file + ": " + f.message));
    failure.put("<xmlattr>.message", writable(f.message));
    failure.put("<xmlattr>.type", "limit");
  }
  std::string notes;
  for (const CheckFinding& f : findings.notes) notes += writable(f.message) + "\n";
  if (!notes.empty()) suite.put("system-out", notes);
  suites.add_child("testsuite", suite);
  document.add_child("testsuites", suites);
  std::ostringstream out;
  tree::write_xml(out, document, tree::xml_writer_make_settings<std::string>(' ', 1, "UTF-8"));
  return out.str();
}

std::string sarif_json(const CheckFindings& findings) {
  Json rules = Json::array();
  for (const Rule& rule : {kFailed, kUnsure, kChanged})
    rules.push_back({{"id", rule.id},
                     {"shortDescription", {{"text", rule.about}}},
                     {"defaultConfiguration", {{"level", rule.level}}}});
  Json results = Json::array();
  const auto add = [&](const Rule& rule, const CheckFinding& f) {
    Json location = {
        {"physicalLocation",
         {{"artifactLocation", {{"uri", uri(f.file)}}}, {"region", {{"startLine", 1}}}}}};
    Json locations = Json::array();
    locations.push_back(std::move(location));
    results.push_back({{"ruleId", rule.id},
                       {"level", rule.level},
                       {"message", {{"text", fmt::format("{}: {}", f.name, f.message)}}},
                       {"locations", std::move(locations)}});
  };
  for (const CheckFinding& f : findings.judged)
    if (f.verdict != Verdict::kPass) add(f.verdict == Verdict::kFail ? kFailed : kUnsure, f);
  for (const CheckFinding& f : findings.notes) add(kChanged, f);
  Json run = {{"tool", {{"driver", {{"name", "rehearse check"}, {"rules", std::move(rules)}}}}},
              {"results", std::move(results)}};
  Json runs = Json::array();
  runs.push_back(std::move(run));
  return json_text({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", std::move(runs)}});
}

std::string github_annotations(const CheckFindings& findings) {
  std::string out;
  const auto add = [&](const char* level, const CheckFinding& f) {
    out += fmt::format("::{} title={}::{}\n", level, command_text("rehearse: " + f.name, true),
                       command_text(f.message, false));
  };
  for (const CheckFinding& f : findings.judged)
    if (f.verdict != Verdict::kPass) add(f.verdict == Verdict::kFail ? "error" : "warning", f);
  // The service shows ten of a kind per step; the largest come first.
  for (std::size_t i = 0; i < std::min<std::size_t>(findings.notes.size(), 10); ++i)
    add("notice", findings.notes[i]);
  return out;
}

}  // namespace rehearse::cli
