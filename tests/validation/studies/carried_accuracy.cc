#include "tests/validation/studies/carried_accuracy.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/core.h>

#include "models/compute/op_cost.h"
#include "models/workload/lift.h"
#include "profiler/ingest/input.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using workload::Lifted;
using workload::Op;

constexpr std::size_t kKinds = std::size(workload::kOpKindNames);

struct Side {
  std::string name;    ///< for people
  std::string device;  ///< in the catalog; recordings of ROCm do not name it
  std::string folder;
};
const Side kH100 = {"H100", "h100_sxm5_80", "h100"};
const Side kMi300x = {"MI300X", "mi300x", "mi300"};

struct Pair {
  std::string name;
  Lifted from, to;
};

Estimate<Seconds> none() {
  return {Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded};
}

/// kKinds of them.
using ByKind = std::vector<Estimate<Seconds>>;

template <class TimeOf>
ByKind sums(const Lifted& lifted, TimeOf time_of) {
  ByKind sums(kKinds, none());
  for (const workload::Layer& layer : lifted.workload.layers)
    for (const Op& op : layer.forward) {
      if (!op.measured) continue;
      const Estimate<Seconds> time = time_of(op);
      Estimate<Seconds>& sum = sums[static_cast<std::size_t>(op.kind)];
      sum.value += time.value;
      sum.low += time.low;
      sum.high += time.high;
      sum.provenance = std::max(sum.provenance, time.provenance);
    }
  return sums;
}

Estimate<Seconds> total(const ByKind& kinds) {
  Estimate<Seconds> sum = none();
  for (const Estimate<Seconds>& kind : kinds) {
    sum.value += kind.value;
    sum.low += kind.low;
    sum.high += kind.high;
    sum.provenance = std::max(sum.provenance, kind.provenance);
  }
  return sum;
}

/// What a pair has in the end: measured on the other device, and carried over to it.
struct Carried {
  ByKind measured, predicted;
};

Result<std::vector<Carried>> carry(const std::vector<Pair>& pairs, const Side& from,
                                   const Side& to) {
  const compute::OpCost there = TRY(compute::OpCost::on(from.device, {}));
  const compute::OpCost here = TRY(compute::OpCost::on(to.device, {}));
  std::vector<Carried> all;
  all.reserve(pairs.size());
  for (const Pair& pair : pairs)
    all.push_back({.measured = sums(pair.to, [](const Op& op) { return *op.measured; }),
                   .predicted = sums(pair.from, [&](const Op& op) {
                     return here.carried(*op.measured, op, there);
                   })});
  return all;
}

/// Of each kind: measured ÷ predicted over all pairs but one; 1 where they have none of it.
std::array<double, kKinds> ratios_without(const std::vector<Carried>& all, std::size_t left_out) {
  std::array<double, kKinds> ratios;
  for (std::size_t k = 0; k < kKinds; ++k) {
    Seconds measured = Seconds::s(0), predicted = Seconds::s(0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == left_out) continue;
      measured += all[i].measured[k].value;
      predicted += all[i].predicted[k].value;
    }
    ratios[k] = measured > Seconds::s(0) && predicted > Seconds::s(0) ? measured / predicted : 1;
  }
  return ratios;
}

Result<Lifted> lift(const fs::path& path) {
  const trace::Trace trace = TRY(ingest::read_inputs(std::span(&path, 1), {}));
  return workload::lift(trace, {});
}

/// Recordings of one name in both folders.
Result<std::vector<Pair>> pairs_in(const fs::path& folder, const Side& from, const Side& to) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / from.folder, error))
    if (fs::exists(folder / to.folder / entry.path().filename())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Pair> pairs;
  for (const fs::path& file : files) {
    Lifted one = TRY(lift(file));
    Lifted other = TRY(lift(folder / to.folder / file.filename()));
    const std::string name = file.filename().string();
    pairs.push_back({name.substr(0, name.find("__")), std::move(one), std::move(other)});
  }
  return pairs;
}

Status add_direction(const fs::path& folder, const Side& from, const Side& to, bool in_full,
                     TimedAccuracy& accuracy) {
  const std::vector<Pair> pairs = TRY(pairs_in(folder, from, to));
  if (pairs.empty()) return {};
  const std::vector<Carried> carried = TRY(carry(pairs, from, to));
  const std::string direction = fmt::format("{} to {}", from.name, to.name);
  TimedCase whole{.name = direction},
      kinds{.name = direction + ", by kind of operation",
            .reason =
                "errors of kinds compensate in the sum; thin batched products and unfused "
                "softmax of one vendor's libraries are not those of the other"},
      others{.name = direction + ", ratios of the other pairs",
             .reason =
                 "three recordings of different sizes do not give ratios that hold: in the "
                 "smallest, attention is bound by a floor"};
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const Carried& c = carried[i];
    const std::string& name = pairs[i].name;
    const Seconds measured = total(c.measured).value;
    whole.rows.push_back({.name = name, .measured = measured, .predicted = total(c.predicted)});
    const std::array<double, kKinds> ratios = ratios_without(carried, i);
    ByKind scaled = c.predicted;
    for (std::size_t k = 0; k < kKinds; ++k) {
      scaled[k].value = scaled[k].value * ratios[k];
      scaled[k].low = scaled[k].low * ratios[k];
      scaled[k].high = scaled[k].high * ratios[k];
      if (c.measured[k].value > Seconds::s(0) && c.predicted[k].value > Seconds::s(0))
        kinds.rows.push_back({.name = fmt::format("{} {}", name, workload::kOpKindNames[k]),
                              .measured = c.measured[k].value,
                              .predicted = c.predicted[k]});
    }
    others.rows.push_back({.name = name, .measured = measured, .predicted = total(scaled)});
  }
  accuracy.cases.push_back(std::move(whole));
  if (!in_full) return {};
  accuracy.cases.push_back(std::move(others));
  accuracy.cases.push_back(std::move(kinds));
  return {};
}

}  // namespace

Result<TimedAccuracy> measure_carried_accuracy(const fs::path& data) {
  TimedAccuracy accuracy;
  const fs::path folder = data / "tracelens-h100-mi300";
  TRY(add_direction(folder, kH100, kMi300x, true, accuracy));
  TRY(add_direction(folder, kMi300x, kH100, false, accuracy));
  return accuracy;
}

std::string carried_section(const TimedAccuracy& accuracy) {
  return timed_section(
      "Recordings carried over to another GPU",
      R"(Kernel time of an inference step, predicted from a recording of the same script on a GPU of the
other vendor. Each operation takes its recorded time, multiplied by the ratio of the cost model's
times on the two devices. The model knows datasheets, tables of products of H100, and one best rate of
MI300X. Nothing was fitted to these pairs.)",
      accuracy);
}

}  // namespace rehearse::cli
