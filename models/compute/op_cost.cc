#include "models/compute/op_cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/compute/constants.h"
#include "sim/base/check.h"

namespace rehearse::compute {

using workload::Op;
using workload::OpKind;

struct OpCost::State {
  DeviceFacts facts;
  Constants constants;
  Sustained sustained;
  std::vector<std::string> sources;

  struct Law {
    double seconds;
    OpClass kind;
    Provenance provenance;
  };
  Law law(const Op& op) const;
  Law product(const Op& op) const;
  Law attention(const Op& op) const;
  double moved(const Op& op, double share) const;
  double memory_share(double benchmark) const;
};

/// The share of a benchmark, scaled to what elementwise kernels are said to get.
double OpCost::State::memory_share(double benchmark) const {
  return sustained.memory ? benchmark * *sustained.memory / constants.memory.elementwise
                          : benchmark;
}

double OpCost::State::moved(const Op& op, double share) const {
  return workload::bytes_of(op).b() / (memory_share(share) * facts.memory_rate.bytes_per_s()) +
         std::max(op.kernels, 1.0) * constants.memory.call;
}

OpCost::State::Law OpCost::State::product(const Op& op) const {
  const Arithmetic arithmetic = arithmetic_of(facts, op.dtype);
  const auto a = static_cast<std::size_t>(arithmetic);
  const WaveShape& shape = constants.waves[a];
  const WaveDevice device{.multiprocessors = facts.multiprocessors,
                          .rate = constants.factors[a] * facts.peak(arithmetic).flop_per_s(),
                          .memory_rate = facts.memory_rate.bytes_per_s()};
  const double bytes = workload::bytes_of(op).b();
  const double benchmark = wave_time(
      shape, device, {.batch = op.batch, .m = op.m, .n = op.n, .k = op.k, .bytes = bytes});
  const double seconds =
      sustained.gemm.value_or(1) * benchmark + (std::max(op.kernels, 1.0) - 1) * shape.launch;
  // Thin: what the device would need at its full rate is less than half of it.
  const double full = workload::flops_of(op).flop() / device.rate;
  const OpClass kind = op.kind == OpKind::kConvolution ? OpClass::kConvolution
                       : full < 0.5 * benchmark        ? OpClass::kThinGemm
                                                       : OpClass::kGemm;
  return {seconds, kind, constants.origins[a]};
}

OpCost::State::Law OpCost::State::attention(const Op& op) const {
  const Arithmetic arithmetic = arithmetic_of(facts, op.dtype);
  const double work = workload::flops_of(op).flop() * (op.causal ? 0.5 : 1);
  const double rate =
      sustained.attention.value_or(constants.attention) * facts.peak(arithmetic).flop_per_s();
  const double bytes = workload::bytes_of(op).b() / (memory_share(constants.memory.elementwise) *
                                                     facts.memory_rate.bytes_per_s());
  return {std::max(work / rate, bytes) + std::max(op.kernels, 1.0) * constants.memory.call,
          OpClass::kAttention, Provenance::kDatasheet};
}

OpCost::State::Law OpCost::State::law(const Op& op) const {
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kConvolution:
      return product(op);
    case OpKind::kAttention:
      return attention(op);
    case OpKind::kNorm:
      return {moved(op, constants.memory.norm), OpClass::kNorm, constants.memory_origin};
    case OpKind::kSoftmax:
      return {moved(op, constants.memory.softmax), OpClass::kSoftmax, constants.memory_origin};
    case OpKind::kElementwise:
    case OpKind::kGather:
      break;
    case OpKind::kCollective:
    case OpKind::kCopy:
      REHEARSE_CHECK(false, "a {} has no cost on a device alone", workload::to_string(op.kind));
  }
  return {moved(op, constants.memory.elementwise), OpClass::kElementwise, constants.memory_origin};
}

namespace {

Status check_range(std::string_view what, const std::optional<double>& value, double least,
                   double most) {
  if (!value || (*value >= least && *value <= most)) return {};
  return fail(fmt::format("sustained {} {:g} is out of range", what, *value),
              fmt::format("a number from {:g} to {:g}", least, most));
}

}  // namespace

Result<OpCost> OpCost::on(std::string_view device, const Sustained& sustained) {
  if (device.find(':') != std::string_view::npos)
    return fail(
        fmt::format("'{}' is a partition of a device, of which no operation was measured", device),
        "the name of a whole device");
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(device);
  if (!gpu) return forward(gpu);
  return on(facts_of(**gpu), sustained);
}

Result<OpCost> OpCost::on(const DeviceFacts& facts, const Sustained& sustained) {
  if (Status ok = check_range("gemm", sustained.gemm, 0.8, 2); !ok) return forward(ok);
  if (Status ok = check_range("memory", sustained.memory, 0.1, 1); !ok) return forward(ok);
  if (Status ok = check_range("attention", sustained.attention, 0.02, 1); !ok) return forward(ok);
  auto state = std::make_shared<State>(State{.facts = facts,
                                             .constants = datasheet_constants(facts),
                                             .sustained = sustained,
                                             .sources = {}});
  state->sources.push_back(fmt::format("{}: published peaks, shapes of other devices", facts.name));
  return OpCost(std::move(state));
}

Estimate<Seconds> OpCost::predicted(const Op& op) const {
  const State::Law law = state_->law(op);
  const Width width = state_->constants.widths[static_cast<std::size_t>(law.kind)];
  return {Seconds::s(law.seconds), Seconds::s(law.seconds * width.low),
          Seconds::s(law.seconds * width.high), law.provenance};
}

Estimate<Seconds> OpCost::time(const Op& op) const {
  return op.measured ? *op.measured : predicted(op);
}

Estimate<Seconds> OpCost::rescale(const Estimate<Seconds>& measured, const Op& before,
                                  const Op& after) const {
  const Estimate<Seconds> was = predicted(before), is = predicted(after);
  const double ratio = is.value / was.value;
  if (ratio == 1) return measured;
  const double low = std::sqrt(is.low / is.value), high = std::sqrt(is.high / is.value);
  return {measured.value * ratio, measured.low * ratio * low, measured.high * ratio * high,
          std::max(measured.provenance, Provenance::kInterpolated)};
}

const std::vector<std::string>& OpCost::sources() const { return state_->sources; }

}  // namespace rehearse::compute
