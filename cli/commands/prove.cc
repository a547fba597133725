// rehearse prove: compares predictions with measurements of real programs on this machine.
#include <algorithm>

#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/output/document.h"
#include "cli/proving/proof.h"
#include "cli/validation/suite.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct ProveOptions {
  std::vector<std::string> pairs;
  std::size_t rounds = 20;
};

Value measured_fields(const MedianStep& step) {
  Value fields = {{"value", step.value.s()}, {"unit", "s"}};
  if (step.interval) {
    fields["low"] = step.interval->first.s();
    fields["high"] = step.interval->second.s();
  }
  return fields;
}

/// What the numbers of a row cannot say.
std::string note_of(const Proven& proven) {
  if (!proven.skipped.empty()) return "skipped: " + proven.skipped;
  if (proven.error) return "failed: " + to_string(proven.error->diagnostics.front());
  const Proof& proof = *proven.proof;
  if (!proof.precision) return "too few rounds for an interval of the medians";
  if (*proof.precision > kKnown)
    return fmt::format("medians known to {:.1f} % only", *proof.precision * 100);
  return "";
}

std::string_view direction_word(const std::optional<bool>& right) {
  return !right ? "unclear" : *right ? "right" : "wrong";
}

Value row_of(const Pair& pair, const Proven& proven) {
  Value row = {{"name", "pair", pair.name}, {"file", pair.file.string()}};
  row["about"] = pair.about;
  row["status"] = !proven.skipped.empty() ? "skipped" : proven.error ? "failed" : "measured";
  if (const auto& proof = proven.proof) {
    row["baseline"] = measured_fields(proof->baseline);
    row["measured"] = measured_fields(proof->candidate);
    row.show("", "baseline", proof->baseline.value, in::kMs);
    row.show("", "measured", proof->candidate.value, in::kMs);
    row.show("predicted", "predicted", proof->predicted, in::kMs);
    row.show("error", "error", change(proof->error()));
    row.show("inside", "inside", proof->inside());
    row.show("measured_change", "measured change", change(proof->measured_change()));
    row.show("predicted_change", "predicted change", change(proof->predicted_change()));
    row.show("direction", "direction", direction_word(proof->right_direction()));
    if (proof->recording_cost)
      row.show("recording_cost", "recording", change(*proof->recording_cost), {}, kInTables);
    row.show("rounds", "rounds", proof->rounds, {}, kInTables);
    if (proof->precision) row["precision"] = *proof->precision;
  }
  row.show("note", "note", maybe(note_of(proven)), {}, kInTables);
  return row;
}

/// The errors of all pairs with a measurement, and the directions of their changes.
void summarize(const std::vector<Proven>& all, Document& document) {
  std::vector<double> errors;
  Intervals intervals;
  std::size_t inside = 0, clear = 0, right = 0, skipped = 0, failed = 0;
  for (const Proven& proven : all) {
    skipped += !proven.skipped.empty();
    failed += proven.error.has_value();
    if (!proven.proof) continue;
    const Proof& proof = *proven.proof;
    errors.push_back(proof.error());
    intervals.add(proof.candidate.value, proof.predicted);
    inside += proof.inside();
    const std::optional<bool> direction = proof.right_direction();
    clear += direction.has_value();
    right += direction.value_or(false);
  }
  std::vector<std::string> parts;
  if (clear > 0)
    parts.push_back(fmt::format("{} of {} changes in the right direction", right, clear));
  if (skipped > 0) parts.push_back(counted(skipped, "pair") + " skipped");
  if (failed > 0) parts.push_back(counted(failed, "pair") + " failed");
  if (errors.empty()) {
    document.answer = sentence_of("No pair was measured", parts);
    return;
  }
  SuiteSummary suite = summary_of("pairs", errors);
  intervals.summarize(suite);
  parts.insert(parts.begin(), fmt::format("median error {:.1f} %", suite.median_error * 100));
  document.answer =
      sentence_of(fmt::format("{} of {} measured steps inside their predicted intervals", inside,
                              errors.size()),
                  parts);
  document["errors"] = suite_json(suite);
  document["directions"] = {{"clear", clear}, {"right", right}};
}

Result<Exit> run(const ProveOptions& options, const Globals& globals) {
  const std::vector<std::filesystem::path> files = TRY(find_pairs(options.pairs));
  std::vector<Pair> pairs;  // all are read before the first runs
  for (const std::filesystem::path& file : files) pairs.push_back(TRY(read_pair(file)));
  Document document{
      .command = "prove", .rows = "pairs", .rows_title = "Pairs", .methods = {Method::kProof}};
  std::vector<Proven> all;
  Value rows = Value::array();
  for (const Pair& pair : pairs) {
    const Progress progress = globals.progress_of("proving " + pair.name);
    all.push_back(prove(pair, options.rounds, [&](std::size_t round) {
      progress(static_cast<double>(round) / static_cast<double>(options.rounds));
    }));
    if (interrupted && !all.back().proof) {
      all.pop_back();
      break;
    }
    rows.push_back(row_of(pair, all.back()));
    if (const std::string note = note_of(all.back()); !note.empty()) {
      document.cautions.push_back(pair.name + ": " + note);
      globals.warn(document.cautions.back());
    }
    if (interrupted) break;
  }
  if (interrupted) {
    if (all.empty()) return fail("stopped");
    document.cautions.push_back(
        fmt::format("stopped: {} of {} measured", all.size(), counted(pairs.size(), "pair")));
    globals.warn(document.cautions.back());
  }
  summarize(all, document);
  document.show("pairs", "Pairs", std::move(rows));
  const bool failed = interrupted || std::ranges::any_of(all, [](const Proven& proven) {
                        return proven.error.has_value();
                      });
  return answer_with(globals, document, failed ? Exit::kFailed : Exit::kSuccess);
}

}  // namespace

void add_prove(CLI::App& app, Action& action) {
  auto options = std::make_shared<ProveOptions>();
  CLI::App& command = *app.add_subcommand(
      "prove", "Run pairs of programs here, and compare their steps with predictions");
  offer(add_value(
            command, "PAIR", "", options->pairs,
            "pair.yaml files, folders of pairs, or names of shipped pairs (default: all shipped)"),
        [] {
          static const std::vector<std::string> names = shipped_pairs();
          return std::vector<std::string_view>(names.begin(), names.end());
        });
  add_number(command, "--rounds", options->rounds, std::size_t{1}, std::size_t{1000},
             "most rounds of a pair; fewer run if the medians are known to 1 % (default 20)");
  command.footer(
      "Example: rehearse prove data_parallel my_pairs/\n"
      "Exits with 1 if a command of a pair fails.");
  run_by(command, action, options, run);
}

}  // namespace rehearse::cli
