#include "tests/validation/studies/operation_accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "cli/calibrate/device_names.h"
#include "models/compute/transfer.h"
#include "sim/base/csv.h"
#include "sim/base/statistics.h"
#include "tests/validation/studies/left_out_width.h"
#include "tests/validation/studies/model_graph.h"
#include "tests/validation/studies/operation_fits.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using compute::Constants;
using compute::DeviceFacts;
using compute::MeasuredOp;

constexpr double kLarge = 1e11;  // FLOPs

compute::Width width_of(const Constants& constants, const compute::Predicted& p) {
  return (p.provenance == Provenance::kInterpolated
              ? constants.known
              : constants.other)[static_cast<std::size_t>(p.kind)];
}

OperationRow row_of(double predicted, const compute::Width& width, double measured) {
  return {predicted / measured - 1,
          measured >= predicted * width.low && measured <= predicted * width.high,
          width.high - width.low};
}

class OperationValidator {
 public:
  OperationValidator(fs::path data, OperationAccuracy& accuracy)
      : data_(std::move(data)), accuracy_(accuracy) {}

  Status run() {
    dealt_ = TRY(deal_operations(data_));
    shipped_ = TRY(fitter_.fit());
    for (compute::Calibration& c : shipped_.calibrations)
      for (const compute::Calibration& s : compute::shipped_calibrations())
        if (s.device == c.device) c.widths = s.widths;
    std::set<std::string> chips;
    for (const DealtOperations& d : dealt_) chips.insert(d.table.measured.facts.architecture);
    for (const DealtOperations& d : dealt_)
      score("known", d, shipped_, d.blind, shipped_.timings.find(d.device(), d.table.kind));
    for (const std::string& chip : chips) TRY(left_out(chip));
    return models();
  }

 private:
  OperationCase& case_of(std::string suite, std::string kind, std::string device) {
    for (OperationCase& c : accuracy_.cases)
      if (c.suite == suite && c.kind == kind && c.device == device) return c;
    accuracy_.cases.push_back(
        {.suite = std::move(suite), .kind = std::move(kind), .device = std::move(device)});
    return accuracy_.cases.back();
  }

  void score(const std::string& suite, const DealtOperations& d, const OperationFits& fits,
             std::span<const MeasuredOp> rows, const compute::Timing& timing, bool named = true) {
    const DeviceFacts& facts = d.table.measured.facts;
    Constants constants = compute::constants_for(facts, fits.calibrations).constants;
    if (named) constants.attention_kernels = d.table.kernels;
    for (const MeasuredOp& r : rows) {
      const compute::Predicted p = compute::predict(facts, constants, r.op, timing);
      const OperationRow row = row_of(p.seconds, width_of(constants, p), r.time.s());
      case_of(suite, d.table.kind, d.device()).rows.push_back(row);
      if (workload::flops_of(r.op).flop() > kLarge)
        case_of(suite, d.table.kind + " above 100 GFLOP", d.device()).rows.push_back(row);
    }
  }

  /// Every device of a chip, from the rows of other chips; and with twenty rows of its own.
  Status left_out(const std::string& chip) {
    const DealtOperations* any = nullptr;
    for (const DealtOperations& d : dealt_)
      if (d.table.measured.facts.architecture == chip) any = &d;
    OperationFits fitted = TRY(fitter_.fit(any->device()));
    OperationFits others = std::move(fitted);
    others.calibrations.front().widths = compute::shipped_calibrations().front().widths;
    for (const DealtOperations& d : dealt_) {
      if (d.table.measured.facts.architecture != chip) continue;
      if (d.table.kind.ends_with(kBestOfSearch)) continue;
      const compute::Timing timing = others.timings.find("", d.table.kind);
      score("left out", d, others, d.blind, timing);
      if (d.table.kernels) score("left out, kernels not named", d, others, d.blind, timing, false);
      if (d.table.kind == "linear" || d.table.kind == "bmm") twenty(d, others, timing);
    }
    left_out_.emplace(chip, std::move(others));
    return {};
  }

  void twenty(const DealtOperations& d, const OperationFits& others,
              const compute::Timing& timing) {
    constexpr std::size_t kRows = 20;
    const std::vector<MeasuredOp>& own = d.table.measured.rows;
    if (own.size() < kRows) return;
    compute::DeviceRows few{.facts = d.table.measured.facts, .rows = {}};
    for (std::size_t i = 0; i < kRows; ++i) few.rows.push_back(own[i * own.size() / kRows]);
    const auto a = compute::arithmetic_of(few.facts, own.front().op.dtype);
    OperationFits with = others;
    compute::MatrixConstants start = compute::constants_for(few.facts, others.calibrations)
                                         .constants.matrix[static_cast<std::size_t>(a)];
    with.calibrations.push_back(
        {.device = d.device(), .matrix = {{a, compute::fit_factor(a, few, start, timing), {}}}});
    score("left out, twenty rows", d, with, d.blind, timing);
  }

  /// e2e_latency.csv: whole models of one device without variants, from per_op/DEVICE/*.csv.gz.
  Status models() {
    const fs::path folder = data_ / "neusight-models";
    if (!fs::exists(folder / "e2e_latency.csv")) return {};
    const CsvTable table = TRY(CsvTable::load(folder / "e2e_latency.csv"));
    TRY(table.require(
        {"gpu", "model", "mode", "seq_len", "batch", "variant", "num_layer", "fw_ms", "bw_ms"}));
    std::vector<Model> predicted;
    std::map<std::string, double> first;  // measured ÷ predicted of the first row of a device
    for (std::size_t r = 0; r < table.rows(); ++r) {
      if (!table.cell(r, "variant").empty()) continue;
      const auto cell = [&](std::string_view column) { return std::string(table.cell(r, column)); };
      const std::optional<double> layers = TRY(table.number(r, "num_layer")),
                                  fw = TRY(table.number(r, "fw_ms")),
                                  bw = TRY(table.number(r, "bw_ms"));
      std::string device = cell("gpu");
      std::replace(device.begin(), device.end(), '_', ' ');
      const Result<const cluster::Gpu*> gpu = device_named(device);
      const std::string label =
          fmt::format("{} {} batch {}", cell("gpu"), cell("model"), cell("batch"));
      const auto graph_at =
          graph_of(folder, cell("gpu"),
                   fmt::format("{}-{}-{}-", cell("model"), cell("mode"), cell("seq_len")),
                   std::atof(cell("batch").c_str()));
      if (!gpu || !graph_at || !layers || !fw || *layers < 1) {
        accuracy_.refused.push_back(label + ": its device, layers or graph are not known");
        continue;
      }
      const bool training = cell("mode") == "train";
      const ModelGraph graph = TRY(read_model_graph(
          graph_at->first, {.layers = *layers, .training = training, .batch = graph_at->second}));
      const DeviceFacts facts = compute::facts_of(**gpu);
      const double measured = (*fw + (training && bw ? *bw : 0)) * 1e-3;
      const bool known = has_own_rows(facts);
      const auto score_with = [&](const std::string& suite, const OperationFits& fits,
                                  double factor) {
        const Constants c = compute::constants_for(facts, fits.calibrations).constants;
        double sum = 0;
        for (const auto* ops : {&graph.forward, &graph.backward})
          for (const workload::Op& op : *ops) sum += compute::predict(facts, c, op).seconds;
        predicted.push_back(
            {suite, training ? "training" : "inference", facts.name, sum * factor, measured});
        return measured / sum;
      };
      if (known) score_with("models, known", shipped_, 1);
      const auto others = left_out_.find(facts.architecture);
      const OperationFits& fits = others != left_out_.end() ? others->second : shipped_;
      const double ratio = score_with("models, left out", fits, 1);
      if (const auto [at, is_first] = first.try_emplace(facts.name, ratio); !is_first)
        score_with("models, left out and one row", fits, at->second);
    }
    for (const Model& m : predicted)
      case_of(m.suite, m.kind, m.device)
          .rows.push_back(row_of(m.predicted, width_without(predicted, m), m.measured));
    return {};
  }

  /// A whole model, from its operations.
  struct Model {
    std::string suite, kind, device;
    double predicted, measured;
  };

  /// What the rows of other devices give; a factor of two where there are too few.
  static compute::Width width_without(const std::vector<Model>& all, const Model& model) {
    LeftOutErrors errors;
    for (const Model& m : all)
      if (m.suite == model.suite && m.kind == model.kind && m.device != model.device)
        errors[m.device].push_back(std::log(m.measured / m.predicted));
    const std::optional<LeftOutWidth> width = left_out_width(errors);
    return width ? compute::Width{width->low, width->high} : compute::Width{0.5, 2};
  }

  bool has_own_rows(const DeviceFacts& facts) const {
    for (const DealtOperations& d : dealt_)
      if (d.device() == facts.name && d.table.kind == "linear") return true;
    return false;
  }

  /// The graph of a model: of the same device and batch where it is there, else of any, and the
  /// ratio of the batches. Shapes do not depend on the device.
  static std::optional<std::pair<fs::path, double>> graph_of(const fs::path& folder,
                                                             const std::string& gpu,
                                                             const std::string& prefix,
                                                             double batch) {
    std::optional<std::pair<fs::path, double>> best;
    int rank = -1;
    std::error_code error;
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "per_op", error))
      if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const double of = std::atof(file.filename().string().substr(prefix.size()).c_str());
      if (!(of > 0)) continue;
      const int here = 2 * (of == batch) + (file.parent_path().filename() == gpu);
      if (here > rank) {
        rank = here;
        best = {file, batch / of};
      }
    }
    return best;
  }

  fs::path data_;
  OperationAccuracy& accuracy_;
  std::vector<DealtOperations> dealt_;
  OperationFitter fitter_{dealt_};
  OperationFits shipped_;
  std::map<std::string, OperationFits> left_out_;
};

}  // namespace

OperationErrors errors_of(const std::vector<OperationRow>& rows) {
  OperationErrors e{.rows = rows.size()};
  if (rows.empty()) return e;
  std::vector<double> sorted, widths;
  const auto n = static_cast<double>(rows.size());
  for (const OperationRow& r : rows) {
    sorted.push_back(std::abs(r.error));
    e.mean += std::abs(r.error) / n;
    e.bias += r.error / n;
    e.coverage += r.covered / n;
    widths.push_back(r.width);
    if (std::abs(r.error) > std::abs(e.worst)) e.worst = r.error;
  }
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double q) { return sorted[static_cast<std::size_t>(q * (n - 1))]; };
  e.median = at(0.5);
  e.p90 = at(0.9);
  e.width = upper_median(widths);
  return e;
}

Result<OperationAccuracy> measure_operation_accuracy(const fs::path& data) {
  OperationAccuracy accuracy;
  TRY(OperationValidator(data, accuracy).run());
  return accuracy;
}

}  // namespace rehearse::cli
