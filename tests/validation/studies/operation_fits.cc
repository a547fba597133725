#include "tests/validation/studies/operation_fits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "models/compute/transfer.h"
#include "sim/base/statistics.h"
#include "tests/validation/studies/left_out_width.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using compute::Arithmetic;
using compute::Calibration;
using compute::DeviceRows;
using compute::MatrixCalibration;
using compute::MatrixConstants;
using compute::MeasuredOp;
using compute::OpClass;
using compute::Timing;
using compute::Width;

constexpr std::string_view kGathered = "2026-08";
/// The largest tiles of half precision, which devices share; for smaller ones the law of a step
/// of the sum says enough.
constexpr std::size_t kAlike = 3;
/// Weights that the tables in half precision and FP8 use in turn (AIConfigurator's collector).
constexpr double kCopies = 6;
constexpr std::string_view kTwoOfThree = "two of three distinct shapes; every third is left out";

bool is_memory(const std::string& kind) {
  return kind == "elementwise" || kind == "norm" || kind == "softmax";
}
bool is_product(const OperationTable& t) {
  return t.measured.rows.front().op.kind == workload::OpKind::kGemm;
}
bool is_deepbench(const OperationTable& t) { return t.kind == "gemm"; }
bool is_convolution(const OperationTable& t) { return t.kind.starts_with("convolution"); }

/// Every so many rows that `most` remain.
std::vector<MeasuredOp> thinned(const std::vector<MeasuredOp>& rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  std::vector<MeasuredOp> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(rows[i * rows.size() / most]);
  return kept;
}

/// Tiles of common kernels, and rates to start a search from.
MatrixConstants start_of(Arithmetic arithmetic) {
  MatrixConstants start;
  if (arithmetic == Arithmetic::kFp32) {
    start.shape = {.tiles = {{{256, 128, 0.93, 2.3e-6},
                              {128, 128, 1.00, 2.3e-6},
                              {128, 64, 0.86, 2.3e-6},
                              {64, 64, 0.83, 2.3e-6},
                              {128, 32, 0.90, 2.3e-6},
                              {32, 32, 0.51, 2.3e-6}}},
                   .count = 6,
                   .cap = 1,
                   .memory = 0.63,
                   .launch = 2e-6,
                   .smooth = 5};
    start.factor = 0.8;
    return start;
  }
  start.shape = {.tiles = {{{256, 128, 0.97, 5.8e-6},
                            {128, 128, 0.82, 4.1e-6},
                            {128, 64, 0.70, 3.2e-6},
                            {64, 64, 0.52, 2.7e-6},
                            {64, 32, 0.35, 2.0e-6}}},
                 .count = 5,
                 .cap = 0.93,
                 .memory = 0.75,
                 .launch = 1e-6,
                 .smooth = 5,
                 .clock = 1.7e9,
                 .step = 1.5e-9,
                 .cut = 1e-6};
  start.factor = 0.95;
  return start;
}

class Fitter {
 public:
  Fitter(const std::vector<DealtOperations>& dealt, const std::string& without,
         OperationFitter::Known& known)
      : known_(known) {
    std::string chip;
    for (const DealtOperations& d : dealt)
      if (d.device() == without) chip = d.table.measured.facts.architecture;
    for (const DealtOperations& d : dealt)
      if (chip.empty() || d.table.measured.facts.architecture != chip ||
          d.table.kind.ends_with(kBestOfSearch))
        tables_.push_back(&d.table);
  }

  Result<OperationFits> run() {
    fits_.calibrations.push_back({.device = std::string(compute::kTypical)});
    for (const Arithmetic a : {Arithmetic::kFp32, Arithmetic::kHalf, Arithmetic::kFp8})
      TRY(products(a));
    // Nothing was measured in TF32: the kernels of half precision, at the same share of their peak.
    MatrixCalibration tf32 = *fits_.calibrations.front().find(Arithmetic::kHalf);
    tf32.arithmetic = Arithmetic::kTf32;
    tf32.fitted.rows_used = "those of half precision: none were measured in TF32";
    fits_.calibrations.front().matrix.push_back(tf32);
    memory();
    for (const Arithmetic a : {Arithmetic::kFp32, Arithmetic::kHalf, Arithmetic::kFp8}) few(a);
    attention();
    return std::move(fits_);
  }

 private:
  /// Tables of products in one arithmetic that hold enough to fit a shape to.
  std::vector<const OperationTable*> tables_of(Arithmetic a, bool few) const {
    std::vector<const OperationTable*> found;
    for (const OperationTable* t : tables_) {
      if (!is_product(*t) || is_convolution(*t)) continue;
      const compute::DeviceFacts& f = t->measured.facts;
      if (compute::arithmetic_of(f, t->measured.rows.front().op.dtype) != a) continue;
      const bool one = is_deepbench(*t) || t->measured.rows.size() < 20;
      if (one == few) found.push_back(t);
    }
    return found;
  }
  /// Tables of one device together.
  static std::vector<DeviceRows> by_device(const std::vector<const OperationTable*>& tables,
                                           std::size_t most) {
    std::vector<DeviceRows> devices;
    for (const OperationTable* t : tables) {
      auto found = std::find_if(devices.begin(), devices.end(), [&](const DeviceRows& d) {
        return d.facts.name == t->measured.facts.name;
      });
      if (found == devices.end()) {
        devices.push_back({t->measured.facts, {}});
        found = devices.end() - 1;
      }
      const std::vector<MeasuredOp> rows = thinned(t->measured.rows, most);
      found->rows.insert(found->rows.end(), rows.begin(), rows.end());
    }
    return devices;
  }
  Calibration& calibration_of(const std::string& device) {
    for (Calibration& c : fits_.calibrations)
      if (c.device == device) return c;
    fits_.calibrations.push_back({.device = device});
    return fits_.calibrations.back();
  }
  static compute::FittedTo fitted_to(const std::vector<const OperationTable*>& tables,
                                     const std::string& device, std::size_t rows, double residual) {
    std::set<std::string> sources;
    for (const OperationTable* t : tables)
      if (device.empty() || t->measured.facts.name == device) sources.insert(t->source);
    std::string source;
    for (const std::string& s : sources) source += (source.empty() ? "" : ", ") + s;
    return {.source = source,
            .rows_used = std::string(kTwoOfThree),
            .date = std::string(kGathered),
            .rows = rows,
            .residual = residual};
  }

  Status products(Arithmetic a) {
    const auto tables = tables_of(a, false);
    if (tables.empty()) {  // the device that is left out is the only one with rows
      const MatrixCalibration* half = fits_.calibrations.front().find(Arithmetic::kHalf);
      if (!half)
        return fail(fmt::format("no table has products in {}, of any device but that left out",
                                compute::to_string(a)),
                    "tables of products in FP32 and in half precision");
      MatrixCalibration m = *half;
      m.arithmetic = a;
      m.constants.quantise = 35;
      fits_.calibrations.front().matrix.push_back(std::move(m));
      return {};
    }
    std::pair key{a, tables};
    if (a == Arithmetic::kFp8)  // its tiles are those of half precision
      for (const OperationTable* t : tables_of(Arithmetic::kHalf, false)) key.second.push_back(t);
    auto found = known_.products.find(key);
    if (found == known_.products.end())
      found = known_.products.emplace(key, fit_products(a, tables)).first;
    fits_.calibrations.front().matrix.push_back(found->second.typical);
    for (const auto& [device, own] : found->second.own)
      calibration_of(device).matrix.push_back(own);
    fits_.timings.add(found->second.timings);
    return {};
  }

  OperationFitter::Products fit_products(Arithmetic a,
                                         const std::vector<const OperationTable*>& tables) {
    constexpr std::size_t kShared = 300, kOwn = 1500;
    const bool fp32 = a == Arithmetic::kFp32;
    // Kernels of FP8 have the tiles of half precision, at another share of their peak.
    const bool as_half = a == Arithmetic::kFp8;
    compute::MatrixFreedom freedom{.shape = !as_half,
                                   .tiles = fp32,
                                   .overhead = fp32,
                                   .reread = fp32,
                                   .copies = fp32 ? 0 : kCopies};
    OperationFitter::Products result;
    MatrixConstants common = start_of(a);
    if (const auto* half = fits_.calibrations.front().find(Arithmetic::kHalf); half && as_half)
      common = half->constants;
    if (!fp32 && !as_half) common.shape.count = kAlike;
    const std::vector<DeviceRows> shared = by_device(tables, kShared);
    const compute::MatrixFit together = compute::fit_matrix(a, shared, common, freedom);
    std::vector<double> factors, batched;
    std::size_t rows = 0;
    for (std::size_t d = 0; d < shared.size(); ++d) {
      rows += shared[d].rows.size();
      batched.push_back(together.devices[d].batched);
      if (compute::power_share(shared[d].facts, a) > 0.85)
        factors.push_back(together.devices[d].factor / compute::issue_share(shared[d].facts, a));
    }
    freedom.tiles = true;
    common = together.devices.front();
    common.reread = {};
    common.factor = factors.empty() ? 0.9 : upper_median(factors);
    common.batched = batched.empty() ? 1 : upper_median(batched);
    common.from = common.to = 0;
    common.provenance = Provenance::kDatasheet;
    result.typical = {a, common, fitted_to(tables, "", rows, together.residual)};
    for (const OperationTable* t : tables) result.timings.set("", t->kind, together.timing);

    for (const DeviceRows& device : by_device(tables, kOwn)) {
      // From a start that no other device changes: it is the same, whichever is left out.
      MatrixConstants start = start_of(a);
      const auto* half = calibration_of(device.facts.name).find(Arithmetic::kHalf);
      if (as_half) start.shape = half ? half->constants.shape : common.shape;
      const auto [at, fresh] = known_.own.try_emplace({a, device.facts.name});
      if (fresh) at->second = compute::fit_matrix(a, std::span(&device, 1), start, freedom);
      const compute::MatrixFit& own = at->second;
      result.own.emplace_back(device.facts.name,
                              MatrixCalibration{a, own.devices.front(),
                                                fitted_to(tables, device.facts.name,
                                                          device.rows.size(), own.residual)});
      for (const OperationTable* t : tables)
        if (t->measured.facts.name == device.facts.name)
          result.timings.set(device.facts.name, t->kind, own.timing);
    }
    return result;
  }

  /// Devices with a handful of rows, or rows of one benchmark alone: their factor, with the shape
  /// that a device without rows would have.
  void few(Arithmetic a) {
    const auto tables = tables_of(a, true);
    const std::vector<Calibration> shapes = fits_.calibrations;
    for (const DeviceRows& device : by_device(tables, 1000)) {
      Calibration& calibration = calibration_of(device.facts.name);
      if (calibration.find(a)) continue;
      MatrixConstants start = compute::constants_for(device.facts, shapes)
                                  .constants.matrix[static_cast<std::size_t>(a)];
      start.quantise = 0;  // these multiply what is quantised already
      MatrixConstants own = compute::fit_factor(a, device, start, {.quantises = false});
      compute::Constants constants;
      constants.matrix[static_cast<std::size_t>(a)] = own;
      const double residual =
          compute::mean_error(device.facts, constants, device.rows, {.quantises = false});
      own.shape.count = 0;
      calibration.matrix.push_back(
          {a, own, fitted_to(tables, device.facts.name, device.rows.size(), residual)});
    }
  }

  void memory() {
    std::vector<const OperationTable*> tables;
    for (const OperationTable* t : tables_)
      if (is_memory(t->kind)) tables.push_back(t);
    std::vector<compute::MemoryConstants> all;
    std::vector<double> elementwise, norm, softmax, fast, slow;
    double residual = 0;
    std::size_t rows = 0;
    for (const DeviceRows& device : by_device(tables, SIZE_MAX)) {
      const auto [at, fresh] = known_.memory.try_emplace(device.facts.name);
      if (fresh) at->second = compute::fit_memory(device, {});
      const compute::MemoryFit& fit = at->second;
      calibration_of(device.facts.name).memory = {
          fit.constants, 0, fitted_to(tables, device.facts.name, device.rows.size(), fit.residual)};
      all.push_back(fit.constants);
      (compute::fast_memory(device.facts) ? fast : slow).push_back(fit.constants.elementwise);
      elementwise.push_back(fit.elementwise_overhead);
      norm.push_back(fit.norm_overhead);
      softmax.push_back(fit.softmax_overhead);
      fits_.timings.set(device.facts.name, "elementwise", {.overhead = elementwise.back()});
      fits_.timings.set(device.facts.name, "norm", {.overhead = norm.back()});
      fits_.timings.set(device.facts.name, "softmax", {.overhead = softmax.back()});
      residual += fit.residual * static_cast<double>(device.rows.size());
      rows += device.rows.size();
    }
    const auto middle = [&](double compute::MemoryConstants::*member) {
      std::vector<double> values;
      for (const compute::MemoryConstants& m : all) values.push_back(m.*member);
      return upper_median(values);
    };
    using M = compute::MemoryConstants;
    M common;
    if (!all.empty()) {
      for (double M::*member : {&M::elementwise, &M::norm, &M::softmax, &M::norm_cache,
                                &M::softmax_cache, &M::norm_sweep, &M::softmax_sweep})
        common.*member = middle(member);
      if (!fast.empty()) common.elementwise = upper_median(fast);
      fits_.timings.set("", "elementwise", {.overhead = upper_median(elementwise)});
      fits_.timings.set("", "norm", {.overhead = upper_median(norm)});
      fits_.timings.set("", "softmax", {.overhead = upper_median(softmax)});
    }
    fits_.calibrations.front().memory = {
        common, slow.empty() ? 0.0 : upper_median(slow),
        fitted_to(tables, "", rows, rows ? residual / static_cast<double>(rows) : 0)};
  }

  void attention() {
    constexpr std::size_t kEach = 300;
    std::vector<const OperationTable*> tables;
    std::vector<compute::AttentionRows> rows;
    std::size_t count = 0;
    for (const OperationTable* t : tables_) {
      if (!t->kernels) continue;
      const compute::DeviceFacts& facts = t->measured.facts;
      tables.push_back(t);
      rows.push_back({facts, compute::constants_for(facts, fits_.calibrations).constants,
                      thinned(t->measured.rows, kEach)});
      rows.back().constants.attention_kernels = t->kernels;
      count += rows.back().rows.size();
    }
    if (tables.empty()) return;
    const auto [at, fresh] = known_.attention.try_emplace(tables);
    if (fresh) at->second = compute::fit_attention(rows);
    const compute::AttentionFit& fit = at->second;
    fits_.calibrations.front().attention = {fit.constants,
                                            fitted_to(tables, "", count, fit.residual)};
    for (const OperationTable* t : tables) fits_.timings.set("", t->kind, fit.timing);
  }

  OperationFitter::Known& known_;
  std::vector<const OperationTable*> tables_;
  OperationFits fits_;
};

/// 5 and 95 % quantiles of measured ÷ predicted, 1 between them.
Width quantiles_of(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double q) {
    return ratios[static_cast<std::size_t>(q * static_cast<double>(ratios.size() - 1))];
  };
  return {.low = std::clamp(at(0.05), 0.02, 1.0), .high = std::clamp(at(0.95), 1.0, 50.0)};
}

using Ratios = std::array<std::vector<double>, compute::kOpClasses>;

void note_ratios(Ratios& ratios, const OperationFits& fits, const DealtOperations& d,
                 std::span<const MeasuredOp> rows) {
  const compute::DeviceFacts& facts = d.table.measured.facts;
  compute::Constants constants = compute::constants_for(facts, fits.calibrations).constants;
  const Timing timing = fits.timings.find(d.device(), d.table.kind);
  const auto note = [&] {
    for (const MeasuredOp& r : rows) {
      const compute::Predicted p = compute::predict(facts, constants, r.op, timing);
      ratios[static_cast<std::size_t>(p.kind)].push_back(r.time.s() / p.seconds);
    }
  };
  note();
  constants.attention_kernels = d.table.kernels;
  if (constants.attention_kernels) note();
}

/// `least`: rows of one campaign agree better than the next run, or the next device, will.
Width at_least(const Width& w, double least) {
  return {std::min(w.low, 1 / (1 + least)), std::max(w.high, 1 + least)};
}

/// Of a device, from its rows.
void set_widths_of(Calibration& calibration, const Ratios& ratios) {
  constexpr std::size_t kEnough = 20;
  constexpr double kLeast = 0.03;
  for (std::size_t i = 0; i < compute::kOpClasses; ++i)
    if (ratios[i].size() >= kEnough)
      calibration.widths[i] = at_least(quantiles_of(ratios[i]), kLeast);
}

/// Of devices without rows, from each chip's rows as the others predict them.
void set_widths_of_others(Calibration& typical, const std::map<std::string, Ratios>& by_chip) {
  constexpr double kLeast = 0.1;
  for (std::size_t i = 0; i < compute::kOpClasses; ++i) {
    LeftOutErrors errors;
    for (const auto& [chip, ratios] : by_chip)
      for (const double ratio : ratios[i]) errors[chip].push_back(std::log(ratio));
    if (const std::optional<LeftOutWidth> w = left_out_width(errors))
      typical.widths[i] = at_least({w->low, w->high}, kLeast);
  }
}

}  // namespace

Timing Timings::find(const std::string& device, const std::string& kind) const {
  if (kind.ends_with(kBestOfSearch)) return {.quantises = false};
  for (const std::string& name : {device, std::string()})
    if (const auto found = all_.find({name, kind}); found != all_.end()) return found->second;
  return {};
}

Result<std::vector<DealtOperations>> deal_operations(const fs::path& data) {
  using Reader = Result<std::vector<OperationTable>> (*)(const fs::path&);
  struct Kind {
    const char* folder;
    const char* prefix;
    const char* part;
    Reader read;
  };
  const Kind kinds[] = {{"aiconfigurator-kernels", "gemm_", ".csv", read_gemm_csv},
                        {"neusight-models/kernels", "", ".csv", read_kernel_csv},
                        {"serving-op-tables", "b200_sxm__vllm", "__gemm.csv", read_gemm_csv},
                        {"serving-op-tables", "", "__context_attention.csv", read_attention_csv},
                        {"serving-op-tables", "", "__generation_attention.csv", read_attention_csv},
                        {"deepbench", "", "__Results_", read_deepbench_csv},
                        {"max-matmul-flops", "mamf", ".csv", read_matmul_csv}};
  std::vector<DealtOperations> dealt;
  for (const Kind& kind : kinds) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(data / kind.folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(kind.prefix) && name.find(kind.part) != std::string::npos)
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      std::vector<OperationTable> tables = TRY(kind.read(file));
      for (OperationTable& t : tables) {
        // vLLM's FP8 on B200 runs slower than half precision: kernels that nobody uses.
        if (t.source.starts_with("b200") && t.kind == "fp8") continue;
        // TensorRT-LLM's benchmark decodes 1.5 times as fast as the memory of B200, and of H100 with
        // grouped heads: sequences share keys and values there.
        if (t.kind == "decoding, torch_flow") continue;
        DealtOperations d{.table = std::move(t), .blind = {}};
        std::vector<MeasuredOp> rows = std::move(d.table.measured.rows);
        d.table.measured.rows.clear();
        std::map<std::tuple<double, double, double, double, double, double>, std::size_t> shapes;
        for (MeasuredOp& r : rows) {
          const workload::Op& op = r.op;
          const std::size_t shape =
              shapes
                  .try_emplace({op.batch, op.m, op.n, op.k, op.bytes.b(), op.width}, shapes.size())
                  .first->second;
          // A table of one row gives it to the fit.
          (shape % 3 == 2 ? d.blind : d.table.measured.rows).push_back(r);
        }
        dealt.push_back(std::move(d));
      }
    }
  }
  if (dealt.empty())
    return fail(Diagnostic{.file = data.string(), .problem = "has no tables of operations"});
  return dealt;
}

Result<OperationFits> OperationFitter::fit(const std::string& without) {
  return Fitter(dealt_, without, known_).run();
}

Status OperationFitter::set_widths(OperationFits& fits) {
  // About as many rows of each table, so that none of the publications decides alone.
  constexpr std::size_t kEach = 50;
  for (Calibration& c : fits.calibrations) {
    if (c.device == compute::kTypical) continue;
    Ratios ratios;
    for (const DealtOperations& d : dealt_)
      if (d.device() == c.device) note_ratios(ratios, fits, d, d.blind);
    set_widths_of(c, ratios);
  }
  std::map<std::string, Ratios> left_out;
  for (const DealtOperations& d : dealt_) {
    const std::string& chip = d.table.measured.facts.architecture;
    const auto [at, is_new] = left_out.try_emplace(chip);
    if (!is_new) continue;
    const OperationFits others = TRY(fit(d.device()));
    for (const DealtOperations& other : dealt_)
      if (other.table.measured.facts.architecture == chip)
        note_ratios(at->second, others, other, thinned(other.blind, kEach));
  }
  set_widths_of_others(fits.calibrations.front(), left_out);
  return {};
}

}  // namespace rehearse::cli
