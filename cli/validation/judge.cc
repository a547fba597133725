#include "cli/validation/judge.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "cli/config/named_files.h"
#include "cli/validation/serving_results.h"
#include "profiler/ingest/input.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

/// Columns that every kind may have.
constexpr std::string_view kCommon[] = {"case", "name", "use", "choice", "group", "note"};
constexpr std::size_t kRowsPerItem = 8;

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

/// Keeps the fastest of the rows with one name that differ in choices which the source leaves open.
void keep_quickest(std::vector<PartRow>& rows, PartRow row) {
  if (!row.choice.empty())
    for (PartRow& other : rows)
      if (!other.choice.empty() && other.row.name == row.row.name) {
        if (row.row.predicted.value < other.row.predicted.value) other = std::move(row);
        return;
      }
  rows.push_back(std::move(row));
}

class Finder {
 public:
  Status path(const fs::path& path) {
    if (held_file(path) != nullptr) {
      found_.files.push_back(table(path));
      return {};
    }
    std::error_code error;
    if (!fs::exists(path, error)) return fail_in(path, "cannot be read");
    // A folder that a profiler wrote is one recording.
    const Result<ingest::InputKind> kind = ingest::detect_input(path);
    if (!fs::is_directory(path, error) || (kind && *kind == ingest::InputKind::kCapture)) {
      found_.files.push_back(file(path));
      return {};
    }
    std::vector<fs::path> entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      entries.push_back(entry.path());
    if (error) return fail_in(path, error.message());
    std::ranges::sort(entries);
    for (const fs::path& entry : entries) {
      // A link to a folder may lead back to this one.
      if (fs::is_symlink(entry, error) && !fs::is_regular_file(entry, error))
        found_.links.push_back(entry);
      else
        TRY(this->path(entry));
    }
    return {};
  }

  MeasuredFiles take() { return std::move(found_); }

 private:
  static MeasuredFile file(const fs::path& path) {
    const bool recording = ingest::detect_input(path).has_value();
    if (recording) return {.path = path, .recording = true};
    if (path.extension() == ".csv") return table(path);
    return {.path = path,
            .skipped =
                "neither a recording nor a CSV file of measurements, which may name results of "
                "benchmarks in a column `result`"};
  }

  static MeasuredFile table(const fs::path& path) {
    MeasuredFile file{.path = path};
    Result<CsvTable> table = CsvTable::load(path);
    if (table && table->has(kResultColumn))
      table = with_serving_results(*table, [&](std::uint32_t line, const Error& error) {
        file.left_out.push_back({to_string(error.diagnostics.front()), place_of(path, line)});
      });
    if (!table) {
      file.skipped = reason_of(table.error());
      return file;
    }
    file.table = std::move(*table);
    for (const MeasurementKind* kind : kinds())
      if (is_of(*file.table, *kind)) file.kinds.push_back(kind);
    if (file.kinds.empty())
      file.skipped = "its columns match no schema of measurements; " +
                     join(kinds(), "; ", [](const MeasurementKind* kind) {
                       return fmt::format("{}: {}", kind->name, join(kind->required, ", "));
                     });
    return file;
  }

  MeasuredFiles found_;
};

/// Rows of a table that are predicted together; a recording has no kind.
struct Item {
  const MeasuredFile* file;
  const MeasurementKind* kind = nullptr;
  std::size_t first = 0, last = 0;
};

std::vector<Item> items_of(const MeasuredFiles& of) {
  std::vector<Item> items;
  for (const MeasuredFile& file : of.files) {
    if (file.recording) items.push_back({&file});
    for (const MeasurementKind* kind : file.kinds)
      for (std::size_t row = 0; row < file.table->rows(); row += kRowsPerItem)
        items.push_back({&file, kind, row, std::min(row + kRowsPerItem, file.table->rows())});
  }
  return items;
}

std::vector<std::string> unknown_columns(const CsvTable& table) {
  std::vector<std::string> unknown;
  for (const std::string& column : table.columns()) {
    const bool known = std::ranges::any_of(kinds(), [&](const auto* kind) {
      return is_of(table, *kind) &&
             (is_in(kind->required, column) || is_in(kind->optional, column));
    });
    if (column.find('.') == std::string::npos && !known &&
        std::ranges::find(kCommon, column) == std::end(kCommon))
      unknown.push_back(column);
  }
  return unknown;
}

Part judge_rows(const Item& item) {
  const CsvTable& table = *item.file->table;
  Part part{.unknown = unknown_columns(table)};
  const PredictRow predict = item.kind->predictor(table, part.unknown);
  for (std::size_t r = item.first; r < item.last; ++r) {
    // A row of another kind alone.
    if (!fills(table, r, *item.kind) &&
        std::ranges::any_of(kinds(), [&](const auto* kind) { return fills(table, r, *kind); }))
      continue;
    Cells cells(table, r);
    const std::string place = place_of(item.file->path, table.line(r));
    const auto use = static_cast<Use>(
        cells.choice("use", kUseNames, static_cast<std::size_t>(Use::kSourceLeftOut)));
    const Result<Verdict> verdict = predict(cells);
    const Status ok = cells.status();
    if (!ok || !verdict) {
      part.skipped.push_back({reason_of(ok ? verdict.error() : ok.error()), place});
      continue;
    }
    std::string of = cells.text("case"), name = cells.text("name"), group = cells.text("group");
    if (of.empty()) of = item.file->path.stem().string();
    if (name.empty()) name = place;
    part.rows.push_back(
        {.suite = fmt::format("{}/{}", item.kind->name, of),
         .choice = cells.text("choice"),
         .row = {.name = std::move(name),
                 .measured = verdict->measured,
                 .predicted = verdict->predicted,
                 .use = use,
                 .group = verdict->group.empty() || group.empty() ? verdict->group : group,
                 .samples = verdict->samples,
                 .parts = verdict->parts}});
  }
  return part;
}

Part judge_item(const Item& item) {
  if (item.kind) return judge_rows(item);
  Result<Part> part = judge_recording(item.file->path);
  if (part) return std::move(*part);
  return {.skipped = {{reason_of(part.error()), item.file->path.string()}}};
}

void add_method(Method method, Judgement& into) {
  if (std::ranges::find(into.methods, method) == into.methods.end()) into.methods.push_back(method);
}

/// Adds the parts of a file, which are the next ones.
class Adder {
 public:
  Adder(const std::vector<Item>& items, const std::vector<std::string>& bytes)
      : items_(items), bytes_(bytes) {}

  void add(const MeasuredFile& file, Judgement& into) {
    if (!file.skipped.empty()) into.skip("file", file.skipped, file.path.string());
    for (const PartSkipped& row : file.left_out) into.skip("row", row.reason, row.place);
    std::set<std::string> unknown;
    while (next_ < items_.size() && items_[next_].file == &file) {
      const MeasurementKind* kind = items_[next_].kind;
      std::map<std::string, std::vector<PartRow>> cases;
      for (; next_ < items_.size() && items_[next_].file == &file && items_[next_].kind == kind;
           ++next_) {
        Part part = part_of(bytes_[next_]);
        if (!part.rows.empty()) add_method(kind ? kind->method : Method::kRecordedTimes, into);
        for (PartSkipped& skipped : part.skipped)
          into.skip(kind ? "row" : "file", std::move(skipped.reason), std::move(skipped.place));
        unknown.insert(part.unknown.begin(), part.unknown.end());
        for (PartRow& row : part.rows) {
          if (kind) {
            std::vector<PartRow>& rows = cases[row.suite];
            keep_quickest(rows, std::move(row));
          } else {
            into.case_of(row.suite, "s").rows.push_back(std::move(row.row));
          }
        }
      }
      for (auto& [suite, rows] : cases)
        for (PartRow& row : rows)
          into.case_of(suite, kind->unit).rows.push_back(std::move(row.row));
    }
    for (const std::string& column : unknown)
      into.skip("column", fmt::format("{}: this column is not used", column),
                file.path.filename().string());
  }

 private:
  const std::vector<Item>& items_;
  const std::vector<std::string>& bytes_;
  std::size_t next_ = 0;
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

Result<MeasuredFiles> measured_files(std::span<const fs::path> paths) {
  Finder finder;
  for (const fs::path& path : paths) TRY(finder.path(path));
  return finder.take();
}

Result<work::Fingerprint> fingerprint_of(const MeasuredFiles& of) {
  work::Fingerprint fingerprint;
  TRY(fingerprint.add_program());
  for (const MeasuredFile& file : of.files) {
    TRY(fingerprint.add_file(file.path));
    if (!file.table) continue;
    for (const std::string& column : file.table->columns())
      for (std::size_t row = 0; row < file.table->rows(); ++row) {
        const std::string cell(trim(file.table->cell(row, column)));
        fingerprint.add(cell);  // those of a benchmark's result are not in the file
        if (column.find('.') != std::string::npos)
          TRY(add_named_file(fingerprint, file.path.parent_path(), cell));
      }
  }
  return fingerprint;
}

Result<Judgement> judge(const MeasuredFiles& of, const work::ExecutionOptions& execution) {
  const std::vector<Item> items = items_of(of);
  const work::Evaluate evaluate = [&](std::size_t i) -> Result<std::string> {
    return bytes_of(judge_item(items[i]));
  };
  const std::vector<std::string> bytes =
      TRY(work::run_all({.part = "rows", .items = items.size(), .evaluate = evaluate}, execution));
  Judgement judgement;
  Adder adder(items, bytes);
  for (const MeasuredFile& file : of.files) adder.add(file, judgement);
  for (const fs::path& link : of.links)
    judgement.skip("file", "a link, but not to a file", link.string());
  return judgement;
}

}  // namespace rehearse::cli
