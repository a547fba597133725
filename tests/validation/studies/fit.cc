#include "tests/validation/studies/fit.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "tests/validation/studies/search.h"

namespace rehearse::compute {
namespace {

using workload::OpKind;

/// Beyond a factor of two a row was disturbed, and it no longer matters by how much.
constexpr double kStray = 0.7;
/// Of an unknown that is not there: the search has positive ones alone.
constexpr double kNone = 1e-12;

double loss_of(const DeviceFacts& facts, const Constants& constants,
               std::span<const MeasuredOp> rows, const Timing& timing) {
  double sum = 0;
  for (const MeasuredOp& r : rows) {
    const double predicted = predict(facts, constants, r.op, timing).seconds;
    sum += std::min(kStray, std::abs(std::log(predicted / r.time.s())));
  }
  return sum;
}

/// The unknowns of a matrix fit as a flat list, and back.
struct Layout {
  Arithmetic arithmetic;
  MatrixConstants start;
  MatrixFreedom freedom;
  std::size_t devices;

  std::vector<Unknown> unknowns() const {
    std::vector<Unknown> all;
    const WaveShape& s = start.shape;
    const auto of_shape = [&](double value, double least, double most) {
      if (freedom.shape)
        all.push_back({std::clamp(value, least, most), least, most});
      else
        all.push_back({value, value, value});
    };
    for (std::size_t t = 0; t < s.count; ++t) {
      of_shape(s.tiles[t].share, 0.2, 1.2);
      of_shape(s.tiles[t].fixed, 0.3e-6, 15e-6);
      if (!freedom.tiles) break;
    }
    of_shape(s.cap, 0.5, 1);
    of_shape(s.memory, 0.25, 0.95);
    of_shape(s.launch, 0.5e-6, 3e-6);
    of_shape(s.smooth, 1.2, 12);
    of_shape(std::max(s.step, kNone), kNone, s.clock > 0 ? 12e-9 : kNone);
    of_shape(std::max(s.cut, kNone), kNone, s.clock > 0 ? 6e-6 : kNone);
    all.push_back({freedom.overhead ? 10e-6 : 1e-9, 1e-9, freedom.overhead ? 80e-6 : 1e-9});
    const bool cached = freedom.copies > 0;
    all.push_back({cached ? 20 : kNone, kNone, cached ? 200 : kNone});
    const bool fp8 = arithmetic == Arithmetic::kFp8;
    all.push_back({fp8 ? 35.0 : 1e-9, fp8 ? 1.0 : 1e-9, fp8 ? 60 : 1e-9});
    for (std::size_t d = 0; d < devices; ++d) {
      all.push_back({std::clamp(start.factor, 0.1, 1.02), 0.1, 1.02});
      all.push_back({1, 0.6, 1.4});
      all.push_back({freedom.reread ? 20000.0 : 1, freedom.reread ? 4000.0 : 1,
                     freedom.reread ? 80000.0 : 1});
      all.push_back({freedom.reread ? 0.05 : 1e-6, 1e-6, freedom.reread ? 6 : 1e-6});
    }
    return all;
  }

  struct Read {
    std::vector<MatrixConstants> devices;
    Timing timing;
  };
  Read read(const std::vector<double>& x) const {
    Read read;
    std::size_t at = 0;
    MatrixConstants common = start;
    WaveShape& s = common.shape;
    for (std::size_t t = 0; t < s.count; ++t) {
      if (t > 0 && !freedom.tiles) {
        s.tiles[t].share = s.tiles[0].share;
        s.tiles[t].fixed = s.tiles[0].fixed;
        continue;
      }
      s.tiles[t].share = x[at++];
      s.tiles[t].fixed = x[at++];
    }
    s.cap = x[at++];
    s.memory = x[at++];
    s.launch = x[at++];
    s.smooth = x[at++];
    s.step = s.clock > 0 ? x[at] : 0;
    s.cut = s.clock > 0 ? x[at + 1] : 0;
    at += 2;
    read.timing = {.overhead = freedom.overhead ? x[at] : 0, .copies = freedom.copies};
    ++at;
    read.timing.cache = x[at++];
    common.quantise = arithmetic == Arithmetic::kFp8 ? x[at] : 0;
    ++at;
    for (std::size_t d = 0; d < devices; ++d) {
      common.factor = x[at++];
      common.batched = x[at++];
      common.reread = freedom.reread ? Reread{x[at], x[at + 1]} : Reread{};
      at += 2;
      read.devices.push_back(common);
    }
    return read;
  }
};

Constants with(Arithmetic arithmetic, const MatrixConstants& matrix) {
  Constants constants;
  constants.matrix[static_cast<std::size_t>(arithmetic)] = matrix;
  return constants;
}

/// The same law with 1 as the largest share.
void normalize(MatrixConstants& c) {
  double most = 0;
  for (std::size_t t = 0; t < c.shape.count; ++t) most = std::max(most, c.shape.tiles[t].share);
  most = std::min(most, c.shape.cap);
  for (std::size_t t = 0; t < c.shape.count; ++t) c.shape.tiles[t].share /= most;
  c.shape.cap /= most;
  c.factor *= most;
}

void note_bounds(MatrixConstants& c, std::span<const MeasuredOp> rows) {
  c.from = HUGE_VAL;
  c.to = 0;
  for (const MeasuredOp& r : rows) {
    const double flops = workload::flops_of(r.op).flop();
    c.from = std::min(c.from, flops);
    c.to = std::max(c.to, flops);
  }
}

}  // namespace

AttentionFit fit_attention(std::span<const AttentionRows> tables) {
  std::vector<AttentionRows> given(tables.begin(), tables.end());
  AttentionFit fit{.constants = {}, .timing = {.copies = 1}, .residual = 0};
  AttentionConstants& c = fit.constants;
  AttentionFamily& flash = c.families[0];
  AttentionFamily& tensorrt = c.families[static_cast<std::size_t>(AttentionKernels::kTensorRt)];
  AttentionFamily& hopper = c.families[static_cast<std::size_t>(AttentionKernels::kAsynchronous)];
  std::vector<double*> targets = {&c.share,  &c.exponentials, &c.fixed,
                                  &c.memory, &c.overlap,      &fit.timing.cache};
  std::vector<Unknown> unknowns = {{0.8, 0.3, 3},  {1.2, 0.05, 6}, {6000, 1, 15000},
                                   {0.85, 0.5, 1}, {2, 1, 10},     {15, 3, 200}};
  const auto unknown = [&](double& target, const Unknown& range) {
    targets.push_back(&target);
    unknowns.push_back(range);
  };
  const auto decoding = [&](Decoding& d) {
    unknown(d.block, {3e-6, 0.5e-6, 10e-6});
    unknown(d.merge, {2e-6, 0.05e-6, 15e-6});
    unknown(d.part, {0.05e-6, 0.001e-6, 1e-6});
  };
  flash.factor = 1;
  unknown(flash.tail, {0.3, 0.02, 1});
  unknown(tensorrt.tail, {0.85, 0.02, 1});
  unknown(flash.decoding.key, {20e-9, 1e-9, 100e-9});
  decoding(flash.decoding);
  for (AttentionFamily* f : {&flash, &tensorrt, &hopper, &c.blackwell}) {
    unknown(f->start, {8e-6, 1e-6, 20e-6});
    if (f == &flash) continue;
    unknown(f->factor, {0.6, 0.25, 2.5});
    if (f != &tensorrt) decoding(f->decoding);
  }
  const auto has_rows = [&](bool blackwell) {
    return std::ranges::any_of(given, [&](const AttentionRows& t) {
      return t.constants.attention_kernels == AttentionKernels::kAsynchronous &&
             t.facts.architecture.starts_with("blackwell") == blackwell;
    });
  };
  const bool on_hopper = has_rows(false), on_blackwell = has_rows(true);
  const auto set = [&](const std::vector<double>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) *targets[i] = x[i];
    // Kernels for asynchronous units end alike.
    hopper.tail = c.blackwell.tail = tensorrt.tail;
    if (!on_hopper) hopper = c.blackwell;
    if (!on_blackwell) c.blackwell = hopper;
    tensorrt.decoding = hopper.decoding;
    for (AttentionRows& t : given) t.constants.attention = c;
  };
  constexpr int kRounds = 150;  // unknowns depend on each other
  const auto loss = [&](const std::vector<double>& x) {
    set(x);
    double sum = 0;
    for (const AttentionRows& t : given)
      sum += loss_of(t.facts, t.constants, t.rows, fit.timing) / static_cast<double>(t.rows.size());
    return sum;
  };
  set(minimize(unknowns, loss, kRounds));
  for (const AttentionRows& t : given)
    fit.residual +=
        mean_error(t.facts, t.constants, t.rows, fit.timing) / static_cast<double>(given.size());
  return fit;
}

double mean_error(const DeviceFacts& facts, const Constants& constants,
                  std::span<const MeasuredOp> rows, const Timing& timing) {
  REHEARSE_CHECK(!rows.empty());
  double sum = 0;
  for (const MeasuredOp& r : rows)
    sum += std::abs(predict(facts, constants, r.op, timing).seconds / r.time.s() - 1);
  return sum / static_cast<double>(rows.size());
}

MatrixFit fit_matrix(Arithmetic arithmetic, std::span<const DeviceRows> devices,
                     const MatrixConstants& start, const MatrixFreedom& freedom) {
  const Layout layout{arithmetic, start, freedom, devices.size()};
  // Each device counts alike, however many rows it has.
  const auto loss = [&](const std::vector<double>& x) {
    const Layout::Read read = layout.read(x);
    double sum = 0;
    for (std::size_t d = 0; d < devices.size(); ++d)
      sum += loss_of(devices[d].facts, with(arithmetic, read.devices[d]), devices[d].rows,
                     read.timing) /
             static_cast<double>(devices[d].rows.size());
    return sum;
  };
  const Layout::Read found = layout.read(minimize(layout.unknowns(), loss));
  MatrixFit fit{.devices = found.devices, .timing = found.timing, .residual = 0};
  for (std::size_t d = 0; d < devices.size(); ++d) {
    fit.residual += mean_error(devices[d].facts, with(arithmetic, fit.devices[d]), devices[d].rows,
                               fit.timing) /
                    static_cast<double>(devices.size());
    normalize(fit.devices[d]);
    note_bounds(fit.devices[d], devices[d].rows);
    fit.devices[d].provenance = Provenance::kInterpolated;
  }
  return fit;
}

MatrixConstants fit_factor(Arithmetic arithmetic, const DeviceRows& device,
                           const MatrixConstants& start, const Timing& timing) {
  MatrixConstants found = start;
  const auto loss = [&](const std::vector<double>& x) {
    found.factor = x[0];
    return loss_of(device.facts, with(arithmetic, found), device.rows, timing);
  };
  found.factor = minimize({{std::clamp(start.factor, 0.1, 1.02), 0.1, 1.02}}, loss)[0];
  note_bounds(found, device.rows);
  found.provenance = Provenance::kInterpolated;
  return found;
}

MemoryFit fit_memory(const DeviceRows& device, const MemoryConstants& start) {
  Constants constants;
  constants.memory = start;
  MemoryFit fit{.constants = start,
                .elementwise_overhead = 0,
                .norm_overhead = 0,
                .softmax_overhead = 0,
                .residual = 0};
  constexpr Unknown kOverhead = {10e-6, 1e-8, 80e-6}, kRatio = {1, 0.7, 1.1},
                    kCache = {0.8, 0.2, 2}, kSweep = {0.4, 0.01, 1.5};
  const auto part = [&](OpKind kind, std::vector<Unknown> unknowns, std::vector<double*> targets,
                        double& overhead) {
    std::vector<MeasuredOp> rows;
    for (const MeasuredOp& r : device.rows)
      if (r.op.kind == kind) rows.push_back(r);
    if (rows.empty()) return;
    unknowns.push_back(kOverhead);
    targets.push_back(&overhead);
    const auto set = [&](const std::vector<double>& x) {
      for (std::size_t i = 0; i < x.size(); ++i) *targets[i] = x[i];
    };
    set(minimize(unknowns, [&](const std::vector<double>& x) {
      set(x);
      return loss_of(device.facts, constants, rows, {.overhead = overhead});
    }));
    fit.residual += mean_error(device.facts, constants, rows, {.overhead = overhead}) *
                    static_cast<double>(rows.size());
  };
  MemoryConstants& m = constants.memory;
  part(OpKind::kElementwise, {{0.8, 0.2, 0.97}}, {&m.elementwise}, fit.elementwise_overhead);
  part(OpKind::kNorm, {kRatio, kCache, kSweep}, {&m.norm, &m.norm_cache, &m.norm_sweep},
       fit.norm_overhead);
  part(OpKind::kSoftmax, {kRatio, kCache, kSweep}, {&m.softmax, &m.softmax_cache, &m.softmax_sweep},
       fit.softmax_overhead);
  fit.constants = m;
  fit.residual /= static_cast<double>(device.rows.size());
  return fit;
}

}  // namespace rehearse::compute
