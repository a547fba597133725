#include "tests/validation/studies/sharing/unmeasured.h"

namespace rehearse::sharing {

DescribedJob encoder_job(WorkKind kind, double layers, double width, double sequence,
                         double launches_per_layer) {
  constexpr double kAccesses = 60;  // of 4 bytes, per token, layer and channel
  return {.kind = kind,
          .training = false,
          .flops = Flops::flop(layers * sequence * (24 * width * width + 4 * width * sequence)),
          .bytes = Bytes::b(kAccesses * width * 4 * sequence * layers),
          .launches = layers * launches_per_layer,
          .parameters = 0,
          .parameter_tensors = 0};
}

UnmeasuredConstants shipped_unmeasured() {
  return {.efficiency = {0.91, 0.83, 0.60, 0.75},
          .launch = Seconds::us(9),
          .optimizer_passes = 18,
          .updates_per_tensor = 5,
          .host = Seconds::us(32),
          .host_in_training = 0.45,
          .spread = 0.115};
}

JobLaw describe(const DescribedJob& job, const cluster::Gpu& gpu,
                const UnmeasuredConstants& constants) {
  const FlopRate peak =
      job.kind == WorkKind::kFp32Matmul ? gpu.fp32 : gpu.tf32_tensor.value_or(gpu.fp32);
  constexpr double kPasses = 3;  // forward, and backward for inputs and for parameters
  const double passes = job.training ? kPasses : 1;
  const double launches = job.launches * passes +
                          (job.training ? constants.updates_per_tensor * job.parameter_tensors : 0);
  const Seconds arithmetic = job.flops / peak, reading = job.bytes / gpu.memory_rate;
  const Seconds launching = constants.launch * launches;
  const Seconds updating =
      job.training ? Bytes::b(constants.optimizer_passes * 4 * job.parameters) / gpu.memory_rate
                   : Seconds::s(0);
  const double efficiency = constants.efficiency[static_cast<std::size_t>(job.kind)];
  return {.host = constants.host * (launches * (job.training ? constants.host_in_training : 1)),
          .fixed = launching + updating,
          .per_size = (arithmetic + reading) * (passes / efficiency),
          .alpha = arithmetic / (arithmetic + reading),
          .beta = updating / (launching + updating),
          .kappa = 1,
          .sharpness = 8,
          .residual = 0,
          .identified = true,
          .smallest = 0,
          .largest = 0,
          .spread = {constants.spread, constants.spread, constants.spread},
          .provenance = Provenance::kDatasheet};
}

SliceRatio ratio_of_gpu(const cluster::MigDevice& device, std::uint32_t profile) {
  SliceRatio ratio = ratio_of(device, profile);
  ratio.compute *= static_cast<double>(device.gpu->multiprocessors) /
                   cluster::multiprocessors_of(device, device.whole);
  return ratio;
}

}  // namespace rehearse::sharing
