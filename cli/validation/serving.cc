// Measured latencies of inference servers, predicted as `rehearse simulate` does.
#include "cli/commands/served_load.h"
#include "cli/validation/job_rows.h"
#include "cli/validation/judge.h"

namespace rehearse::cli {
namespace {

template <class Of>
PredictRow served_predictor(const CsvTable& table, std::vector<std::string>& unknown,
                            std::string_view column, Of of) {
  return [rows = JobRows(table), &unknown, column, of](Cells& cells) mutable -> Result<Verdict> {
    const ServeFile file = TRY(rows.read<ServeFile>(
        cells.row(), unknown, [](const YamlMap& root, const std::filesystem::path& folder) {
          return read_serve(root, folder);
        }));
    const ServedLoad load = TRY(serve(file));
    return Verdict{.measured = cells.positive(column), .predicted = in_unit(of(load), &Seconds::s)};
  };
}

PredictRow ttft_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  return served_predictor(table, unknown, "ttft_s",
                          [](const ServedLoad& load) { return load.ttft(&serving::Spread::mean); });
}

PredictRow tpot_predictor(const CsvTable& table, std::vector<std::string>& unknown) {
  return served_predictor(table, unknown, "tpot_s", [](const ServedLoad& load) {
    return load.estimate<Seconds>(
        [](const serving::Measures& m) { return Seconds::s(m.tpot.mean); });
  });
}

}  // namespace

const MeasurementKind kMeasuredTtft = {.name = "ttft",
                                       .unit = "s",
                                       .required = {"serve.model", "ttft_s"},
                                       .predictor = ttft_predictor};
const MeasurementKind kMeasuredTpot = {.name = "tpot",
                                       .unit = "s",
                                       .required = {"serve.model", "tpot_s"},
                                       .predictor = tpot_predictor};

}  // namespace rehearse::cli
