#include "tests/validation/studies/serving_accuracy.h"

#include <cmath>

#include <fmt/core.h>

#include "cli/output/table.h"
#include "cli/validation/judge.h"
#include "sim/base/statistics.h"
#include "tests/validation/studies/measured_jobs.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInFlight = "serve.load.closed";

/// All settings but the requests in flight, and what follows from their number.
std::string settings_of(const CsvTable& table, std::size_t row) {
  std::string settings;
  for (const char* column :
       {"case", "serve.model", "serve.precision.weights", "serve.plan.tensor",
        "serve.plan.pipeline", "serve.plan.expert", "serve.load.input", "serve.load.output"})
    settings += fmt::format("{}\n", table.cell(row, column));
  return settings;
}

Status add_neighbours(const CsvTable& table, const std::string& kind,
                      std::map<std::string, std::vector<double>>& errors) {
  const std::string column = kind + "_s";
  if (!table.has(column)) return {};
  struct Row {
    double in_flight, measured;
  };
  std::map<std::string, std::vector<Row>> alike;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const auto in_flight = table.number(r, kInFlight), measured = table.number(r, column);
    if (!in_flight) return forward(in_flight);
    if (!measured) return forward(measured);
    alike[settings_of(table, r)].push_back({in_flight->value_or(1), measured->value_or(1)});
  }
  for (const auto& [settings, rows] : alike)
    for (const Row& row : rows) {
      const Row* nearest = nullptr;
      const auto distance = [&](const Row& other) {
        return std::abs(std::log(other.in_flight / row.in_flight));
      };
      for (const Row& other : rows)
        if (other.in_flight != row.in_flight && (!nearest || distance(other) < distance(*nearest)))
          nearest = &other;
      if (nearest)
        errors[kind + "/" + settings.substr(0, settings.find('\n'))].push_back(
            std::abs(nearest->measured / row.measured - 1));
    }
  return {};
}

}  // namespace

Result<ServingAccuracy> measure_serving_accuracy(const fs::path& data) {
  const Result<fs::path> folder = converted(data);
  if (!folder) return forward(folder);
  if (!fs::exists(*folder / "serving")) return ServingAccuracy{};
  const fs::path files[] = {*folder / "serving"};
  Result<Judgement> judgement = judge(files, {});
  if (!judgement) return forward(judgement);
  std::map<std::string, std::vector<double>> errors;
  for (const fs::directory_entry& entry : fs::directory_iterator(files[0])) {
    const Result<CsvTable> table = CsvTable::load(entry.path());
    if (!table) return forward(table);
    for (const char* kind : {"ttft", "tpot"})
      if (Status ok = add_neighbours(*table, kind, errors); !ok) return forward(ok);
  }
  ServingAccuracy found{std::move(*judgement), {}};
  for (auto& [name, all] : errors) found.neighbour[name] = median(std::move(all));
  return found;
}

std::string serving_section(const ServingAccuracy& found) {
  Table table({{"case", Align::kLeft},
               {"rows"},
               {"median error (%)"},
               {"p90 error (%)"},
               {"in the interval (%)"},
               {"median error of the neighbour (%)"}});
  for (const SuiteSummary& suite : summarize(found.judgement)) {
    const auto neighbour = found.neighbour.find(suite.name);
    table.add(
        {suite.name, fmt::format("{}", suite.rows), fmt::format("{:.1f}", 100 * suite.median_error),
         fmt::format("{:.1f}", 100 * suite.p90_error),
         suite.interval_coverage ? fmt::format("{:.0f}", 100 * *suite.interval_coverage) : "–",
         neighbour == found.neighbour.end() ? "–"
                                            : fmt::format("{:.1f}", 100 * neighbour->second)});
  }
  return R"(
## Inference servers

Mean latencies of aggregated servers in closed loops, from `rehearse validate` with a job of a server per row. The
*neighbour* is the measured row of the same server, model, plan and lengths whose number of requests in flight is
nearest: a prediction without a model. The runs of all cases but `tpot/vllm 0.12 h100_sxm` gave constants of servers.
TTFT is judged only where the client is known, because most of it is the wait in the client's first burst.

)" + table.markdown();
}

}  // namespace rehearse::cli
