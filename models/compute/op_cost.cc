#include "models/compute/op_cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/compute/transfer.h"

namespace rehearse::compute {

using workload::Op;
using workload::OpKind;

struct OpCost::State {
  DeviceFacts facts;
  Constants constants;  // with sustained values instead of benchmarks' memory and attention
  double gemm;          // time of matrix operations ÷ benchmark
  std::vector<std::string> sources;

  /// Time in a job ÷ that by the laws. Those of convolutions in matrix units hold in jobs: their shares
  /// come from recorded trainings.
  double sustained(const Op& op) const {
    const bool product = op.kind == OpKind::kGemm;
    return product && arithmetic_of(facts, op.dtype) != Arithmetic::kFp32 ? gemm : 1;
  }
};

namespace {

Status check_range(std::string_view what, const std::optional<double>& value, double least,
                   double most) {
  if (!value || (*value >= least && *value <= most)) return {};
  return fail(fmt::format("sustained {} {:g} is out of range", what, *value),
              fmt::format("a number from {:g} to {:g}", least, most));
}

/// How much of a prediction's own error a ratio of two predictions keeps.
enum class Shared : std::uint8_t {
  kMostly,   ///< by one law, of one vendor's libraries: half of it, as a logarithm
  kNothing,  ///< of different vendors' libraries: that of both predictions, in squares
};

/// A measured time for something else, by the ratio of two predictions.
Estimate<Seconds> times_ratio(const Estimate<Seconds>& measured, const Estimate<Seconds>& was,
                              const Estimate<Seconds>& is, Shared errors, Provenance provenance) {
  if (!(was.value > Seconds::s(0))) return measured;
  const double ratio = is.value / was.value;
  if (ratio == 1) return measured;
  double below = std::log(is.value / is.low), above = std::log(is.high / is.value);
  if (errors == Shared::kMostly) {
    below /= 2;
    above /= 2;
  } else {
    below = std::hypot(below, std::log(was.high / was.value));
    above = std::hypot(above, std::log(was.value / was.low));
  }
  return {measured.value * ratio, measured.low * ratio * std::exp(-below),
          measured.high * ratio * std::exp(above), provenance};
}

}  // namespace

Result<OpCost> OpCost::on(std::string_view device, const Sustained& sustained,
                          std::span<const Calibration> calibrations) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(device));
  return on(facts_of(gpu), sustained, calibrations);
}

Result<OpCost> OpCost::on(const DeviceFacts& facts, const Sustained& sustained,
                          std::span<const Calibration> calibrations) {
  TRY(check_range("gemm", sustained.gemm, 0.8, 2));
  TRY(check_range("memory", sustained.memory, 0.1, 1));
  TRY(check_range("attention", sustained.attention, 0.02, 1));
  Transferred found = constants_for(facts, calibrations);
  if (sustained.memory) found.constants.memory.elementwise = *sustained.memory;
  found.constants.attention_share = sustained.attention;
  found.constants.attention_kernels = sustained.attention_kernels;
  return OpCost(std::make_shared<State>(State{.facts = facts,
                                              .constants = found.constants,
                                              .gemm = sustained.gemm.value_or(1),
                                              .sources = std::move(found.sources)}));
}

Estimate<Seconds> OpCost::predicted(const Op& op) const {
  Predicted p = predict(state_->facts, state_->constants, op);
  p.seconds *= state_->sustained(op);
  const Widths& widths =
      p.provenance == Provenance::kInterpolated ? state_->constants.known : state_->constants.other;
  const Width width = widths[static_cast<std::size_t>(p.kind)];
  return {Seconds::s(p.seconds), Seconds::s(p.seconds * width.low),
          Seconds::s(p.seconds * width.high), p.provenance};
}

OpCost OpCost::with(MeasuredOps measured) const {
  OpCost cost = *this;
  cost.measured_ = std::make_shared<const MeasuredOps>(std::move(measured));
  return cost;
}

std::optional<Estimate<Seconds>> OpCost::measured(const Op& op) const {
  std::optional<Estimate<Seconds>> alone;
  if (measured_) alone = measured_->find(op);
  if (!alone) return alone;
  const double factor = measured_->in_job(op.kind).value_or(state_->sustained(op));
  return *alone * factor;
}

Estimate<Seconds> OpCost::time(const Op& op) const {
  if (op.measured && !workload::differs_from_measured(op)) return *op.measured;
  if (const std::optional<Estimate<Seconds>> alone = measured(op)) return *alone;
  if (!op.measured) return predicted(op);
  return rescale(*op.measured, workload::as_measured(op), op);
}

Estimate<Seconds> OpCost::rescale(const Estimate<Seconds>& measured, const Op& before,
                                  const Op& after) const {
  return times_ratio(measured, predicted(before), predicted(after), Shared::kMostly,
                     std::max(measured.provenance, Provenance::kInterpolated));
}

Estimate<Seconds> OpCost::carried(const Estimate<Seconds>& measured, const Op& op,
                                  const OpCost& from) const {
  const bool alike = state_->facts.vendor == from.state_->facts.vendor;
  return times_ratio(measured, from.predicted(op), predicted(op),
                     alike ? Shared::kMostly : Shared::kNothing, Provenance::kExtrapolated);
}

const std::vector<std::string>& OpCost::sources() const { return state_->sources; }

}  // namespace rehearse::compute
