// Measured latencies of inference servers, predicted as `rehearse simulate` does.
#include "cli/commands/served_load.h"
#include "cli/validation/job_rows.h"
#include "cli/validation/judge.h"

namespace rehearse::cli {
namespace {

constexpr std::string_view kRateColumn = "output_tokens_per_s";

/// `of` gives the prediction of a load, in the unit of the column.
template <class Of>
PredictRow served_predictor(const CsvTable& table, std::vector<std::string>& unknown,
                            std::string_view column, Of of) {
  return [rows = JobRows(table), &unknown, column, of](Cells& cells) mutable -> Result<Verdict> {
    const ServeFile file = TRY(rows.read<ServeFile>(
        cells.row(), unknown, [](const YamlMap& root, const std::filesystem::path& folder) {
          return read_serve(root, folder);
        }));
    const ServedLoad load = TRY(serve(file));
    return Verdict{.measured = cells.positive(column), .predicted = of(load, cells)};
  };
}

PredictRow ttft_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  constexpr std::string_view kPlaces[] = {"client", "server"};
  return served_predictor(table, unknown, "ttft_s", [=](const ServedLoad& load, Cells& cells) {
    const bool at_server = cells.choice("measured_at", kPlaces, 0) == 1;
    return in_unit(
        at_server ? load.ttft_at_server(&serving::Spread::mean) : load.ttft(&serving::Spread::mean),
        &Seconds::s);
  });
}

PredictRow tpot_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  return served_predictor(table, unknown, "tpot_s", [](const ServedLoad& load, Cells&) {
    return load.estimate<double>([](const serving::Measures& m) { return m.tpot.mean; });
  });
}

PredictRow rate_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  return served_predictor(table, unknown, kRateColumn, [](const ServedLoad& load, Cells&) {
    return load.estimate<double>(
        [](const serving::Measures& m) { return m.output_tokens / m.duration; });
  });
}

}  // namespace

const MeasurementKind kMeasuredTtft = {.name = "ttft",
                                       .method = Method::kServer,
                                       .unit = "s",
                                       .required = {"serve.model", "ttft_s"},
                                       .optional = {"measured_at"},
                                       .predictor = ttft_predictor};
const MeasurementKind kMeasuredTpot = {.name = "tpot",
                                       .method = Method::kServer,
                                       .unit = "s",
                                       .required = {"serve.model", "tpot_s"},
                                       .predictor = tpot_predictor};
const MeasurementKind kMeasuredOutputRate = {.name = "output_rate",
                                             .method = Method::kServer,
                                             .unit = "tokens/s",
                                             .required = {"serve.model", kRateColumn},
                                             .predictor = rate_predictor};

}  // namespace rehearse::cli
