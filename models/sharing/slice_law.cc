#include "models/sharing/slice_law.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include <fmt/core.h>

namespace rehearse::sharing {
namespace {

struct Step {
  SliceRatio slice;
  double size;
  double time;
};

double together(double host, double gpu, double p) {
  const double longer = std::max(host, gpu);
  if (longer <= 0) return 0;
  return longer * std::pow(std::pow(host / longer, p) + std::pow(gpu / longer, p), 1 / p);
}

Status check_points(const std::vector<SweepPoint>& points, std::size_t least, const char* where) {
  std::vector<double> sizes;
  for (const SweepPoint& p : points) {
    if (!(p.size > 0) || !(p.time.s() > 0) || !std::isfinite(p.size) || !std::isfinite(p.time.s()))
      return fail(fmt::format("a step of {} s at batch {} {} is not a measurement", p.time.s(),
                              p.size, where),
                  "a batch and a time above zero");
    sizes.push_back(p.size);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.size() < least)
    return fail(fmt::format("steps at {} batch sizes {} are too few to fit their growth",
                            sizes.size(), where),
                fmt::format("at least {}", least));
  return {};
}

double squares(const JobLaw& law, const std::vector<Step>& steps) {
  double sum = 0;
  for (const Step& s : steps) {
    const double error = law.time(s.slice, s.size).s() / s.time - 1;
    sum += error * error;
  }
  return sum;
}

/// Fits A and w, neither negative, by least squares of relative errors on the GPU's part of steps
/// that are longer than the host's time.
void fit_gpu(JobLaw& law, const std::vector<Step>& steps, bool with_fixed) {
  double n = 0, b = 0, bb = 0, g = 0, bg = 0;
  const double p = law.sharpness, host = law.host.s();
  for (const Step& s : steps) {
    const double part = 1 - std::pow(host / s.time, p);
    if (part < 0.05) continue;  // the host hides it
    const double gpu = s.time * std::pow(part, 1 / p), weight = 1 / (s.time * s.time);
    n += weight;
    b += weight * s.size;
    bb += weight * s.size * s.size;
    g += weight * gpu;
    bg += weight * s.size * gpu;
  }
  if (bb == 0) return;
  const double determinant = n * bb - b * b;
  double fixed = 0, per_size = bg / bb;
  if (with_fixed && determinant > 1e-12 * n * bb) {
    const double both_fixed = (g * bb - b * bg) / determinant;
    const double both_slope = (n * bg - b * g) / determinant;
    if (both_fixed >= 0 && both_slope >= 0) {
      fixed = both_fixed;
      per_size = both_slope;
    }
  }
  law.fixed = Seconds::s(fixed);
  law.per_size = Seconds::s(per_size);
}

/// Moves one unknown at a time by smaller and smaller steps as long as `cost` falls.
void descend(JobLaw& law, bool own_shares, const std::function<double(const JobLaw&)>& cost) {
  constexpr double kFirst = 0.2, kLast = 1e-4;
  constexpr double kSharePart = 0.5;  // α and β are within 0 to 1: of those, steps are added
  double now = cost(law);
  const int unknowns = own_shares ? 5 : 3;
  for (double step = kFirst; step > kLast;) {
    bool moved = false;
    for (int u = 0; u < unknowns; ++u)
      for (const double by : {step, -step}) {
        JobLaw tried = law;
        if (u == 0) tried.host = law.host * (1 + by);
        if (u == 1) tried.fixed = law.fixed * (1 + by);
        if (u == 2) tried.per_size = law.per_size * (1 + by);
        if (u == 3) tried.alpha = std::clamp(law.alpha + kSharePart * by, 0.0, 1.0);
        if (u == 4) tried.beta = std::clamp(law.beta + kSharePart * by, 0.0, 1.0);
        const double after = cost(tried);
        if (after >= now - 1e-12) continue;
        now = after;
        law = tried;
        moved = true;
      }
    if (!moved) step /= 2;
  }
}

/// H, A and w from steps on the whole GPU, where α, β and κ have no effect.
JobLaw fit_sweep(JobLaw law, const std::vector<Step>& steps, bool with_fixed = true) {
  constexpr int kCandidates = 60;
  const double shortest = std::ranges::min_element(steps, {}, &Step::time)->time;
  JobLaw best = law;
  double least = -1;
  for (int i = 0; i <= kCandidates; ++i) {
    law.host = Seconds::s(1.1 * shortest * i / kCandidates);
    law.fixed = law.per_size = Seconds::s(0);
    fit_gpu(law, steps, with_fixed);
    const double now = squares(law, steps);
    if (least >= 0 && now >= least) continue;
    least = now;
    best = law;
  }
  descend(best, false, [&](const JobLaw& tried) { return squares(tried, steps); });
  return best;
}

/// Whether a sweep on the whole GPU determines the GPU's time: its longest step is at least twice
/// its shortest.
bool tells(const std::vector<Step>& steps) {
  const auto [least, most] = std::ranges::minmax_element(
      steps, [](const Step& a, const Step& b) { return a.time < b.time; });
  return most->time >= 2 * least->time;
}

/// The least saving, in squares of relative errors, for a knee other than the usual one.
constexpr double kPullOfKnee = 5e-4;
constexpr double kKnees[] = {8, 4, 2.5, 1.5};

/// H, w and p of a sweep that does not tell A and w apart. Both H and A are times of kernels: one
/// costs the host 32 to 51 us, 0.45 of that in training, and the GPU at least 9 us
/// (docs/concepts/sharing.md, without measurements). A is therefore a share of H. Steps that grow
/// long before the GPU takes as long as the host have a softer knee.
JobLaw fit_hidden(const JobLaw& prior, const std::vector<Step>& steps, bool training) {
  constexpr double kKernel = 9, kLaunch = 40, kInTraining = 0.45;
  const double share = kKernel / (kLaunch * (training ? kInTraining : 1));
  const auto tied = [&](JobLaw law) {
    law.fixed = law.host * share;
    return law;
  };
  std::optional<JobLaw> best;
  double least = 0;
  for (const double p : kKnees) {
    JobLaw law = prior;
    law.sharpness = p;
    law = fit_sweep(law, steps, false);
    const double pull = p == prior.sharpness ? 0 : kPullOfKnee;
    const auto cost = [&](const JobLaw& tried) { return squares(tied(tried), steps) + pull; };
    descend(law, false, cost);
    if (best && cost(law) >= least) continue;
    least = cost(law);
    best = tied(law);
  }
  return *best;
}

JobLaw law_of(const std::vector<SweepPoint>& whole, WorkKind kind, bool training,
              const SliceConstants& constants) {
  JobLaw law = {.alpha = constants.alpha_of(kind),
                .beta = constants.beta(training),
                .kappa = constants.kappa,
                .smallest = whole.front().size,
                .largest = whole.front().size,
                .spread = constants.spread};
  for (const SweepPoint& p : whole) {
    law.smallest = std::min(law.smallest, p.size);
    law.largest = std::max(law.largest, p.size);
  }
  return law;
}

std::vector<Step> steps_of(const std::vector<SweepPoint>& points, SliceRatio slice) {
  std::vector<Step> steps;
  steps.reserve(points.size());
  for (const SweepPoint& p : points) steps.push_back({slice, p.size, p.time.s()});
  return steps;
}

}  // namespace

SliceConstants shipped_constants() {
  return {.alpha = {0.80, 0.52, 0.54, 0.50},
          .beta_inference = 0.14,
          .beta_training = 0.20,
          .kappa = 1.02,
          .spread = {0.06, 0.32, 0.08}};
}

SliceRatio ratio_of(const cluster::MigDevice& device, std::uint32_t profile) {
  return {.compute = static_cast<double>(cluster::multiprocessors_of(device, device.whole)) /
                     cluster::multiprocessors_of(device, profile),
          .memory = static_cast<double>(device.positions) / device.profile(profile).memory_slices};
}

Seconds JobLaw::gpu(SliceRatio slice, double size) const {
  if (slice.is_whole()) return fixed + per_size * size;
  const double slower = (alpha * slice.compute + (1 - alpha) * slice.memory) / kappa;
  // κ is a property of small slices: none is faster than the whole GPU.
  return fixed * (1 - beta + beta * slice.memory) + per_size * (size * std::max(1.0, slower));
}

Seconds JobLaw::time(SliceRatio slice, double size) const {
  return Seconds::s(together(host.s(), gpu(slice, size).s(), sharpness));
}

Regime JobLaw::regime(SliceRatio slice, double size) const {
  if (gpu(slice, size) < host) return Regime::kFloor;
  return gpu({}, size) < host ? Regime::kCrossed : Regime::kBusy;
}

Result<JobLaw> fit_whole(const std::vector<SweepPoint>& whole, WorkKind kind, bool training,
                         const SliceConstants& constants) {
  TRY(check_points(whole, 3, "on the whole GPU"));
  const std::vector<Step> steps = steps_of(whole, {});
  const JobLaw prior = law_of(whole, kind, training, constants);
  JobLaw law = tells(steps) ? fit_sweep(prior, steps) : fit_hidden(prior, steps, training);
  law.identified = tells(steps);
  law.residual = std::sqrt(squares(law, steps) / static_cast<double>(steps.size()));
  return law;
}

Result<SequenceLaw> fit_sequence(const std::vector<SweepPoint>& whole, WorkKind kind, bool training,
                                 const SliceConstants& constants) {
  TRY(check_points(whole, 3, "on the whole GPU"));
  constexpr int kCandidates = 40;
  constexpr double kMost = 1.0 / 200;  // as much attention as everything else at 200 tokens
  std::optional<SequenceLaw> best;
  for (int i = 0; i <= kCandidates; ++i) {
    const double quadratic = kMost * i / kCandidates;
    std::vector<SweepPoint> sizes = whole;
    for (SweepPoint& p : sizes) p.size *= 1 + quadratic * p.size;
    const std::vector<Step> steps = steps_of(sizes, {});
    SequenceLaw tried = {.law = fit_sweep(law_of(sizes, kind, training, constants), steps, false),
                         .quadratic = quadratic};
    tried.law.identified = tells(steps);
    tried.law.residual = std::sqrt(squares(tried.law, steps) / static_cast<double>(steps.size()));
    if (!best || tried.law.residual < best->law.residual) best = tried;
  }
  return *best;
}

Result<JobLaw> fit_with_slice(const std::vector<SweepPoint>& whole, SliceRatio slice,
                              const std::vector<SweepPoint>& on_slice, WorkKind kind, bool training,
                              const SliceConstants& constants) {
  TRY(check_points(whole, 3, "on the whole GPU"));
  TRY(check_points(on_slice, 1, "on the slice"));
  // The least saving, in squares of relative errors, for moving a share by 1. It was chosen on the
  // jobs left out.
  constexpr double kPull = 0.02;
  const std::vector<Step> sweep = steps_of(whole, {});
  std::vector<Step> steps = sweep;
  for (const Step& s : steps_of(on_slice, slice)) steps.push_back(s);
  const JobLaw prior = law_of(whole, kind, training, constants);
  JobLaw best = prior;
  double least = -1;
  for (const double p : kKnees) {
    JobLaw law = prior;
    law.sharpness = p;
    law = fit_sweep(law, sweep);
    // A of 0 would stay 0.
    if (law.fixed.s() == 0) law.fixed = law.host * 1e-3;
    const auto cost = [&](const JobLaw& tried) {
      const double alpha = tried.alpha - prior.alpha, beta = tried.beta - prior.beta;
      return squares(tried, steps) + kPull * (alpha * alpha + beta * beta) +
             (p == prior.sharpness ? 0 : kPullOfKnee);
    };
    descend(law, true, cost);
    if (least >= 0 && cost(law) >= least) continue;
    least = cost(law);
    best = law;
  }
  best.residual = std::sqrt(squares(best, steps) / static_cast<double>(steps.size()));
  return best;
}

Estimate<Seconds> predict(const JobLaw& law, SliceRatio slice, double size) {
  const Seconds time = law.time(slice, size);
  const bool measured = law.provenance != Provenance::kDatasheet && slice.is_whole();
  const bool inside = size >= law.smallest && size <= law.largest;
  // A fit of few steps errs by more than its residual.
  const double spread = measured ? std::max(0.03, 2 * law.residual)
                                 : law.spread[static_cast<std::size_t>(law.regime(slice, size))];
  Estimate<Seconds> estimate = {
      .value = time,
      .low = time / (1 + spread),
      .high = time * (1 + spread),
      .provenance = measured && inside ? Provenance::kInterpolated : law.provenance};
  if (!law.identified && !slice.is_whole()) {
    // The GPU may have been idle except for w and A at their least, or busy all the time.
    const Seconds whole = law.time({}, size);
    estimate.low = std::min(estimate.low, whole / (1 + law.spread[0]));
    estimate.high = std::max(estimate.high, whole * std::max(slice.compute, slice.memory));
  }
  return estimate;
}

double collocation_gain(const JobLaw& law, SliceRatio slice, std::uint32_t count, double size) {
  return count * (law.time({}, size) / law.time(slice, size));
}

}  // namespace rehearse::sharing
