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

/// All settings but the load, and what follows from it. Empty if they are not stated.
std::string settings_of(const CsvTable& table, std::size_t row) {
  const std::string group(table.has("group") ? table.cell(row, "group") : "");
  if (!table.has(kInFlight))
    return group.empty() ? "" : fmt::format("{}\n{}", table.cell(row, "case"), group);
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
    const auto measured = TRY(table.number(r, column));
    // Without requests in flight, loads are numbered.
    std::optional<double> load = static_cast<double>(r + 1);
    if (table.has(kInFlight)) {
      load = TRY(table.number(r, kInFlight));
    }
    if (const std::string settings = settings_of(table, r); !settings.empty() && measured)
      alike[settings].push_back({load.value_or(1), *measured});
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
  const fs::path folder = TRY(converted(data));
  if (!fs::exists(folder / "serving")) return ServingAccuracy{};
  const fs::path files[] = {folder / "serving"};
  const MeasuredFiles measured = TRY(measured_files(files));
  Judgement judgement = TRY(judge(measured, {}));
  std::map<std::string, std::vector<double>> errors;
  for (const fs::directory_entry& entry : fs::directory_iterator(files[0])) {
    const CsvTable table = TRY(CsvTable::load(entry.path()));
    for (const char* kind : {"ttft", "tpot"}) TRY(add_neighbours(table, kind, errors));
  }
  ServingAccuracy found{std::move(judgement), {}};
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

Mean latencies and output rates of aggregated servers, from `rehearse validate` with a job of a server per row. The
*neighbour* is the measured row of the same server, model, plan and lengths whose load is nearest (requests in flight, or
the other rate of arrivals): a prediction without a model. No run of vllm 0.12, of TensorRT-LLM 1.2 on H100, of Mistral Large
(vllm 0.6) and of the replays gave a constant; all other cases did, and [errors without them](concepts/serving-price.md#runs-of-servers)
are larger. The replays also decided that dense models have no passes for experts
([0105](decisions/0105-steps-with-prompts.md)). In closed loops TTFT is judged only where the client is known, because
most of it is the wait in the client's first burst; SGLang's client is not described, and its equal lengths were found by these
rows ([0123](decisions/0123-kernels-that-servers-run.md)). Runs of vllm 0.6 are replicas with requests in turn, under Poisson
arrivals at light load; their TTFT, and that of the replays, is the server's. *Above saturation* are closed loops whose mean
TTFT was above 2 s (with SGLang: on one GPU), where most requests wait for keys and values, and whole replays. *Published* cases are
`tests/validation/published_servers.csv`: 259 results of eleven servers and seven publishers that gave no constant
([0163](decisions/0163-servers-of-other-publishers.md)). *Offline* ones have all requests at once and no client.

)" + table.markdown();
}

}  // namespace rehearse::cli
