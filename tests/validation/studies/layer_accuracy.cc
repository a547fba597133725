#include "tests/validation/studies/layer_accuracy.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/cluster/catalog.h"
#include "strategies/step/work.h"
#include "tests/validation/studies/convnet_times.h"
#include "tests/validation/studies/galvatron_times.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGalvatronDevice = "a100_sxm4_80", kTrioSimDevice = "h100_sxm5_80";

Result<step::OpPrice> price_on(std::string_view device, workload::Elementwise elementwise) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(device));
  const step::Conditions conditions = step::conditions_for(gpu, elementwise);
  compute::OpCost cost = TRY(compute::OpCost::on(device, conditions.sustained));
  return step::OpPrice(std::move(cost), conditions);
}

Estimate<Seconds> sum_of(const std::vector<workload::Op>& ops, const step::OpPrice& price) {
  Estimate<Seconds> sum{Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded};
  for (const workload::Op& op : ops) {
    const Estimate<Seconds> time = price.estimate(op);
    sum.value += time.value;
    sum.low += time.low;
    sum.high += time.high;
    sum.provenance = std::max(sum.provenance, time.provenance);
  }
  return sum;
}

std::vector<fs::path> profiles_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.path().filename().string().find("computation_profiling_") != std::string::npos)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_host_bound(const GalvatronTimes& times) {
  return times.file.find("bert_hf") != std::string::npos && times.model.model.hidden == 1024;
}

std::string_view reason_of(std::string_view name) {
  if (name == "triosim, passes")
    return "gradients of ResNet-50's 1 x 1 convolutions to fewer channels run at 20 to 50 TFLOP/s, "
           "as in FP32";
  if (name == "triosim, layers")
    return "the first convolution runs in FP32, at a quarter of the peak";
  if (name == "galvatron, the host decides")
    return "the worst row has heads of 50 elements, which is no multiple of what matrix units take";
  return "";
}

TimedCase& case_named(TimedAccuracy& accuracy, std::string_view name) {
  for (TimedCase& c : accuracy.cases)
    if (c.name == name) return c;
  accuracy.cases.push_back({.name = std::string(name), .reason = std::string(reason_of(name))});
  return accuracy.cases.back();
}

Status galvatron(const fs::path& folder, TimedAccuracy& accuracy) {
  std::vector<GalvatronTimes> profiles;
  for (const fs::path& file : profiles_in(folder)) {
    GalvatronTimes times = TRY(read_galvatron_times(file, accuracy.left_out));
    profiles.push_back(std::move(times));
  }
  // Hooks of FSDP around a layer and its parts: of the framework, not of the model's size.
  Seconds host = Seconds::s(0);
  for (const GalvatronTimes& times : profiles)
    if (is_host_bound(times))
      for (const GalvatronLayerTime& layer : times.layers)
        host += layer.time / static_cast<double>(times.layers.size());
  constexpr double kHostFastest = 0.8, kHostSlowest = 1.25;
  for (const GalvatronTimes& times : profiles) {
    if (times.layers.empty()) continue;
    const step::OpPrice price = TRY(price_on(
        kGalvatronDevice, galvatron_unfused(times.model) ? workload::Elementwise::kUnfused
                                                         : workload::Elementwise::kCompiled));
    for (const GalvatronLayerTime& layer : times.layers) {
      const std::vector<workload::Op> ops =
          TRY(galvatron_forward(times.model, layer.batch, layer.sequence));
      Estimate<Seconds> predicted = sum_of(ops, price);
      const bool host_decides = host > predicted.value;
      predicted = {std::max(predicted.value, host), std::max(predicted.low, host * kHostFastest),
                   std::max(predicted.high, host * kHostSlowest),
                   host_decides ? Provenance::kInterpolated : predicted.provenance};
      case_named(accuracy, host_decides ? "galvatron, the host decides" : "galvatron")
          .rows.push_back(
              {.name = fmt::format("{} batch {:g} sequence {} layers {}, {}", times.file,
                                   layer.batch, layer.sequence, layer.fewer, layer.more),
               .measured = layer.time,
               .predicted = predicted,
               .fitted = is_host_bound(times)});
    }
  }
  return {};
}

Status triosim(const fs::path& folder, TimedAccuracy& accuracy) {
  const std::vector<ConvnetTimes> all = TRY(read_convnet_times(folder));
  const step::OpPrice price = TRY(price_on(kTrioSimDevice, workload::Elementwise::kEager));
  for (const ConvnetTimes& net : all) {
    const auto add = [&](std::string_view name, const std::vector<ConvnetPass>& passes) {
      for (const ConvnetPass& pass : passes)
        case_named(accuracy, name)
            .rows.push_back(
                {.name = fmt::format("{} batch {:g} {}", net.name, net.batch, pass.name),
                 .measured = pass.time,
                 .predicted = sum_of(pass.ops, price),
                 .fitted = true});
    };
    add("triosim, passes", net.whole);
    add("triosim, layers", net.layers);
  }
  return {};
}

}  // namespace

Result<TimedAccuracy> measure_layer_accuracy(const fs::path& data) {
  TimedAccuracy accuracy;
  if (fs::exists(data / "galvatron-profiles"))
    TRY(galvatron(data / "galvatron-profiles", accuracy));
  if (fs::exists(data / "triosim-h100")) TRY(triosim(data / "triosim-h100", accuracy));
  return accuracy;
}

std::string layer_section(const TimedAccuracy& accuracy) {
  return timed_section(
      "Single layers",
      R"(Layers inside models, predicted from the description of the model, the laws of operations and the
conditions of jobs.

- Galvatron: the forward pass of a layer, as the difference of runs with two depths. The GPU is not
  named and is assumed to be an A100 of 80 GB. The host's time for a layer is the mean over the rows of
  BERT-large. All rows were in sight when the GPU was assumed, when fused kernels were chosen, and when
  it was inferred that FSDP casts the parameters of each layer.
- TrioSim: device time of training on one H100. Shares of convolutions in matrix units and conversions of
  layout were fitted to its kernels, and to those of A100 and T4. Other batches and several GPUs were
  not recorded.)",
      accuracy);
}

}  // namespace rehearse::cli
