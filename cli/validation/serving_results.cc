#include "cli/validation/serving_results.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/file.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using ResultCells = std::map<std::string, std::string>;

/// Python writes numbers that JSON does not have.
std::string without_python_numbers(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (!quoted && rest.starts_with("Infinity")) {
      out += "\"inf\"";
      i += std::string_view("Infinity").size() - 1;
    } else if (!quoted && rest.starts_with("NaN")) {
      out += "null";
      i += std::string_view("NaN").size() - 1;
    } else if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      out += text.substr(i++, 2);
    } else {
      quoted ^= text[i] == '"';
      out += text[i];
    }
  }
  return out;
}

/// The runs of a file with their lines: one of JSON, or one per line.
std::vector<std::pair<std::uint32_t, nlohmann::json>> benchmark_runs(std::string_view text) {
  nlohmann::json whole = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::pair<std::uint32_t, nlohmann::json>> runs;
  if (!whole.is_discarded()) {
    runs.emplace_back(1, std::move(whole));
    return runs;
  }
  std::uint32_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (!trim(line).empty()) runs.emplace_back(number, nlohmann::json::parse(line, nullptr, false));
  }
  return runs;
}

/// A run of a benchmark. Errors name the key.
class BenchmarkRun {
 public:
  BenchmarkRun(const nlohmann::json& run, std::string file, std::uint32_t line)
      : run_(run), file_(std::move(file)), line_(line) {}

  tl::unexpected<Error> wrong(std::string key, std::string problem, std::string expected) const {
    return fail(Diagnostic{.file = file_,
                           .line = line_,
                           .key = std::move(key),
                           .problem = std::move(problem),
                           .expected = std::move(expected)});
  }

  const nlohmann::json* find(const char* key) const {
    const auto found = run_.find(key);
    return found == run_.end() || found->is_null() ? nullptr : &*found;
  }
  Result<double> number(const char* key, double least = 0) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return wrong(key, "is missing", "the result of a serving benchmark");
    if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() < 1e15))
      return wrong(key, "is no number of a benchmark", fmt::format("{:g} or more", least));
    return value->get<double>();
  }

  Result<ResultCells> cells() const {
    if (!run_.is_object())
      return wrong("", "is no JSON object", "the result of a serving benchmark");
    ResultCells cells;
    const double completed = TRY(number("completed", 1));
    if (find("num_prompts") != nullptr)
      if (const double asked = TRY(number("num_prompts", 1)); asked != completed)
        return wrong("completed", fmt::format("{:g} of {:g} requests ended", completed, asked),
                     "a run in which no request failed");
    TRY(read_load(completed, cells));
    TRY(read_lengths(completed, cells));
    const double ttft = TRY(number("mean_ttft_ms")), output = TRY(number("output_throughput"));
    cells["ttft_s"] = fmt::format("{}", ttft / 1000);
    // 0 where no request has a second token.
    if (const double tpot = TRY(number("mean_tpot_ms")); tpot > 0)
      cells["tpot_s"] = fmt::format("{}", tpot / 1000);
    cells["output_tokens_per_s"] = fmt::format("{}", output);
    return cells;
  }

 private:
  Status read_load(double completed, ResultCells& cells) const {
    const auto count = [](double n) { return fmt::format("{:.0f}", n); };
    if (find("ramp_up_strategy") != nullptr)
      return wrong("ramp_up_strategy", "is a rate that changes", "a run with one rate");
    std::optional<double> most;
    if (find("max_concurrency") != nullptr) most = TRY(number("max_concurrency", 1));
    const nlohmann::json* rate = find("request_rate");
    cells["serve.load.requests"] = count(completed);
    if (rate != nullptr && rate->is_string() && rate->get<std::string>() == "inf") {
      cells["serve.load.closed"] = count(std::min(most.value_or(completed), completed));
      return {};
    }
    if (rate == nullptr || !rate->is_number())
      return wrong("request_rate", "is no rate that can be repeated",
                   "a number of requests per second, or inf");
    const double per_s = TRY(number("request_rate", 1e-6));
    cells["serve.load.rate"] = fmt::format("{}", per_s);
    if (find("burstiness") != nullptr) {
      const double shape = TRY(number("burstiness", 0.01));
      cells["serve.load.shape"] = fmt::format("{}", shape);
    }
    if (most) cells["serve.load.in_flight"] = count(*most);
    return {};
  }

  /// SGLang's random lengths are uniform from a share of the longest; others are known by their means.
  Status read_lengths(double completed, ResultCells& cells) const {
    const nlohmann::json* set = find("dataset_name");
    const bool random = set != nullptr && set->is_string() &&
                        set->get<std::string>().starts_with("random") &&
                        find("random_range_ratio") != nullptr;
    const auto lengths = [&](const char* total, const char* longest) -> Result<std::string> {
      const double mean = TRY(number(total, completed)) / completed;
      if (!random || find(longest) == nullptr) return fmt::format("{:.0f}", mean);
      const double most = TRY(number(longest, 1)), share = TRY(number("random_range_ratio"));
      return fmt::format("{{uniform: [{:.0f}, {:.0f}]}}",
                         std::max(1.0, std::floor(most * std::min(share, 1.0))), most);
    };
    cells["serve.load.input"] = TRY(lengths("total_input_tokens", "random_input_len"));
    cells["serve.load.output"] = TRY(lengths("total_output_tokens", "random_output_len"));
    return {};
  }

  const nlohmann::json& run_;
  std::string file_;
  std::uint32_t line_;
};

std::string csv_quoted(std::string_view cell) {
  std::string out = "\"";
  for (const char c : cell) {
    if (c == '"') out += c;
    out += c;
  }
  return out + '"';
}

/// "runs.jsonl:3" as a file and a line; 0 without one.
std::pair<std::string_view, std::size_t> file_and_line(std::string_view word) {
  const std::size_t colon = word.rfind(':');
  std::size_t line = 0;
  if (colon == word.npos) return {word, 0};
  const auto [end, error] =
      std::from_chars(word.data() + colon + 1, word.data() + word.size(), line);
  if (error != std::errc() || end != word.data() + word.size() || line == 0) return {word, 0};
  return {word.substr(0, colon), line};
}

}  // namespace

Result<ResultCells> serving_result(const std::filesystem::path& path, std::size_t line) {
  const std::string text = without_python_numbers(TRY(read_file(path)));
  const auto runs = benchmark_runs(text);
  for (const auto& [number, run] : runs)
    if (number == line || (line == 0 && runs.size() == 1))
      return BenchmarkRun(run, path.string(), number).cells();
  return fail(Diagnostic{.file = path.string(),
                         .problem = line == 0
                                        ? fmt::format("has {}", counted(runs.size(), "result"))
                                        : fmt::format("has no result on line {}", line),
                         .expected = "one result, or FILE:LINE with one"});
}

Result<CsvTable> with_serving_results(
    const CsvTable& table, const std::function<void(std::uint32_t, const Error&)>& skip) {
  const std::filesystem::path folder = std::filesystem::path(table.name()).parent_path();
  std::vector<std::optional<ResultCells>> rows(table.rows());
  std::vector<std::string> columns = table.columns();
  std::erase(columns, kResultColumn);
  const auto add = [&](const std::string& column) {
    if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
  };
  for (const char* measured : {"ttft_s", "tpot_s", "output_tokens_per_s"}) add(measured);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto [name, line] = file_and_line(trim(table.cell(row, kResultColumn)));
    const Result<ResultCells> cells =
        named_file(folder, name).and_then([line = line](const std::filesystem::path& path) {
          return serving_result(path, line);
        });
    if (!cells) {
      skip(table.line(row), cells.error());
      continue;
    }
    rows[row] = *cells;
    for (const auto& [column, cell] : *cells) add(column);
  }
  std::string text = join(columns, ",", csv_quoted) + "\n";
  std::uint32_t line = 2;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!rows[row]) continue;
    for (; line < table.line(row); ++line) text += '\n';
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      std::string cell = table.has(column) ? std::string(table.cell(row, column)) : std::string();
      line += static_cast<std::uint32_t>(std::ranges::count(cell, '\n'));
      if (trim(cell).empty() && rows[row]->contains(column)) cell = rows[row]->at(column);
      cells.push_back(csv_quoted(cell));
    }
    text += join(cells, ",", [](const std::string& cell) { return cell; }) + "\n";
    ++line;
  }
  return CsvTable::parse(text, table.name());
}

}  // namespace rehearse::cli
