#include "models/serving/key_transfer.h"

namespace rehearse::serving {

Transfer transfer_between(const StepPrice& sender, const StepPrice& receiver,
                          const Network& network) {
  const auto ranks = [](const StepPrice& price) {
    return double{1} * price.plan().tensor * price.plan().pipeline;
  };
  const ServedModel& model = receiver.model();
  const double shared = ranks(receiver) / ranks(sender);
  const Seconds token = model.cache_per_token / network.rate;
  const Seconds windowed = model.windowed_per_token / network.rate;
  return {.out = {token * shared, windowed * shared},
          .in = {token, windowed},
          .window = static_cast<std::int64_t>(model.window),
          .latency = network.latency,
          .layers = network.by_layer ? static_cast<std::int64_t>(model.layer_count) : 0};
}

}  // namespace rehearse::serving
