#include "cli/validation/judge.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "cli/validation/serving_results.h"
#include "profiler/ingest/input.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

/// Columns that every kind may have.
constexpr std::string_view kCommon[] = {"case", "name", "use", "choice", "group", "note"};

const std::vector<const MeasurementKind*>& kinds() {
  static const std::vector<const MeasurementKind*> all = {
      &kMeasuredJobs,  &kMeasuredMemory, &kMeasuredOperations, &kMeasuredCollectives,
      &kMeasuredPairs, &kMeasuredTtft,   &kMeasuredTpot,       &kMeasuredOutputRate};
  return all;
}

bool is_in(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_of(const CsvTable& table, const MeasurementKind& kind) {
  return std::ranges::all_of(kind.required,
                             [&](std::string_view column) { return table.has(column); });
}

bool fills(const CsvTable& table, std::size_t row, const MeasurementKind& kind) {
  return is_of(table, kind) && std::ranges::all_of(kind.required, [&](std::string_view column) {
           return !trim(table.cell(row, column)).empty();
         });
}

std::string place_of(const fs::path& path, std::uint32_t line) {
  return fmt::format("{}:{}", path.filename().string(), line);
}

/// Without the place, which may be in a generated text.
std::string reason_of(const Error& error) {
  Diagnostic first = error.diagnostics.front();
  first.file.clear();
  first.line.reset();
  first.column.reset();
  return to_string(first);
}

struct Predicted {
  JudgedRow judged;
  std::string choice;
};

/// Keeps the fastest of the rows with one name that differ in choices which the source leaves open.
void keep_quickest(std::vector<Predicted>& rows, Predicted row) {
  if (!row.choice.empty())
    for (Predicted& other : rows)
      if (!other.choice.empty() && other.judged.name == row.judged.name) {
        if (row.judged.predicted.value < other.judged.predicted.value) other = std::move(row);
        return;
      }
  rows.push_back(std::move(row));
}

class Judge {
 public:
  Judge(const Progress& progress) : progress_(progress) {}

  Status path(const fs::path& path) {
    if (held_file(path) != nullptr) return measurements(path);
    std::error_code error;
    if (!fs::exists(path, error)) return fail_in(path, "cannot be read");
    if (!fs::is_directory(path, error)) return file(path);
    // A folder that a profiler wrote is one recording.
    const Result<ingest::InputKind> kind = ingest::detect_input(path);
    if (kind && *kind == ingest::InputKind::kCapture) return file(path);
    std::vector<fs::path> entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      entries.push_back(entry.path());
    if (error) return fail_in(path, error.message());
    std::ranges::sort(entries);
    for (const fs::path& entry : entries) {
      // A link to a folder may lead back to this one.
      if (fs::is_symlink(entry, error) && !fs::is_regular_file(entry, error))
        judgement_.skip("file", "a link, but not to a file", entry.string());
      else
        TRY(this->path(entry));
    }
    return {};
  }

  Judgement take() { return std::move(judgement_); }

 private:
  Status file(const fs::path& path) {
    const bool recording = ingest::detect_input(path).has_value();
    if (path.extension() == ".csv" && !recording) return measurements(path);
    if (recording) {
      if (Status ok = judge_recording(path, judgement_); !ok)
        judgement_.skip("file", reason_of(ok.error()), path.string());
    } else {
      judgement_.skip("file", "neither a recording nor a CSV file of measurements", path.string());
    }
    return {};
  }

  Status measurements(const fs::path& path) {
    Result<CsvTable> table = CsvTable::load(path);
    if (table && table->has(kResultColumn))
      table = with_serving_results(*table, [&](std::uint32_t line, const Error& error) {
        judgement_.skip("row", to_string(error.diagnostics.front()), place_of(path, line));
      });
    if (!table) {
      judgement_.skip("file", reason_of(table.error()), path.string());
      return {};
    }
    bool any = false;
    std::set<std::string> unknown;
    for (const MeasurementKind* kind : kinds()) {
      if (!is_of(*table, *kind)) continue;
      any = true;
      TRY(rows(path, *table, *kind, unknown));
    }
    for (const std::string& column : unknown)
      judgement_.skip("column", fmt::format("{}: this column is not used", column),
                      path.filename().string());
    if (!any) {
      const std::string known = join(kinds(), "; ", [](const MeasurementKind* kind) {
        return fmt::format("{}: {}", kind->name, join(kind->required, ", "));
      });
      judgement_.skip("file", "its columns match no schema of measurements; " + known,
                      path.string());
    }
    return {};
  }

  Status rows(const fs::path& path, const CsvTable& table, const MeasurementKind& kind,
              std::set<std::string>& not_used) {
    std::vector<std::string> unknown;
    for (const std::string& column : table.columns()) {
      const bool other = std::ranges::any_of(kinds(), [&](const auto* k) {
        return is_of(table, *k) && (is_in(k->required, column) || is_in(k->optional, column));
      });
      if (column.find('.') == std::string::npos && !other &&
          std::ranges::find(kCommon, column) == std::end(kCommon))
        unknown.push_back(column);
    }
    const PredictRow predict = kind.predictor(table, unknown);
    std::map<std::string, std::vector<Predicted>> cases;
    for (std::size_t r = 0; r < table.rows(); ++r) {
      if (progress_ && !progress_(static_cast<double>(r) / static_cast<double>(table.rows())))
        return fail("stopped");
      // A row of another kind alone.
      if (!fills(table, r, kind) &&
          std::ranges::any_of(kinds(), [&](const auto* k) { return fills(table, r, *k); }))
        continue;
      Cells cells(table, r);
      const std::string place = place_of(path, table.line(r));
      const auto use = static_cast<Use>(
          cells.choice("use", kUseNames, static_cast<std::size_t>(Use::kSourceLeftOut)));
      const Result<Verdict> verdict = predict(cells);
      const Status ok = cells.status();
      if (!ok || !verdict) {
        judgement_.skip("row", reason_of(ok ? verdict.error() : ok.error()), place);
        continue;
      }
      std::string of = cells.text("case"), name = cells.text("name"), group = cells.text("group");
      if (of.empty()) of = path.stem().string();
      if (name.empty()) name = place;
      keep_quickest(
          cases[of],
          {.judged = {.name = std::move(name),
                      .measured = verdict->measured,
                      .predicted = verdict->predicted,
                      .use = use,
                      .group = verdict->group.empty() || group.empty() ? verdict->group : group,
                      .samples = verdict->samples,
                      .parts = verdict->parts},
           .choice = cells.text("choice")});
    }
    for (auto& [of, found] : cases) {
      JudgedCase& into = judgement_.case_of(fmt::format("{}/{}", kind.name, of), kind.unit);
      for (Predicted& row : found) into.rows.push_back(std::move(row.judged));
    }
    not_used.insert(unknown.begin(), unknown.end());
    return {};
  }

  const Progress& progress_;
  Judgement judgement_;
};

}  // namespace

std::string Cells::text(std::string_view column) const {
  return table_.has(column) ? std::string(trim(table_.cell(row_, column))) : std::string();
}

double Cells::positive(std::string_view column, std::optional<double> otherwise) {
  const Result<std::optional<double>> value =
      text(column).empty() ? std::optional<double>() : table_.number(row_, column);
  if (!value) {
    errors_.diagnostics.push_back(value.error().diagnostics.front());
    return 1;
  }
  if (!*value && otherwise) return *otherwise;
  if (*value && **value > 0) return **value;
  errors_.diagnostics.push_back(
      Diagnostic{.key = std::string(column),
                 .problem = *value ? fmt::format("{} is not above zero", text(column)) : "is empty",
                 .expected = "a number above zero"});
  return 1;
}

std::size_t Cells::choice(std::string_view column, std::span<const std::string_view> names,
                          std::optional<std::size_t> otherwise) {
  const std::string word = text(column);
  if (word.empty() && otherwise) return *otherwise;
  const auto found = std::ranges::find(names, word);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  errors_.diagnostics.push_back(
      Diagnostic{.key = std::string(column),
                 .problem = word.empty() ? "is empty" : fmt::format("unknown '{}'", word),
                 .expected = suggest(word, names)});
  return 0;
}

Status Cells::status() const {
  if (errors_.diagnostics.empty()) return {};
  return fail(errors_.diagnostics.front());
}

Result<Judgement> judge(std::span<const fs::path> paths, const Progress& progress) {
  Judge judge(progress);
  for (const fs::path& path : paths) TRY(judge.path(path));
  return judge.take();
}

}  // namespace rehearse::cli
