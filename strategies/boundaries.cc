#include "strategies/boundaries.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::strategies {

using workload::Degrees, workload::Layout, workload::Stage;

namespace {

bool divide(std::uint32_t a, std::uint32_t b) { return std::max(a, b) % std::min(a, b) == 0; }

/// Along one axis: the indices in `other` that `index` of `own` exchanges with.
struct Range {
  std::uint32_t first, count;
};
Range range(std::uint32_t own, std::uint32_t index, std::uint32_t other) {
  if (other > own) return {index * (other / own), other / own};
  return {index / (own / other), 1};
}

double over(std::uint32_t a, std::uint32_t b) { return static_cast<double>(a) / b; }

}  // namespace

std::optional<std::uint32_t> tied_with(const Layout& layout, std::uint32_t stage) {
  const std::vector<ChunkPlace> chain = chain_of(layout);
  if (!(layout.tied_gradient > Bytes::b(0)) || chain.front().stage == chain.back().stage)
    return std::nullopt;
  if (chain.front().stage == stage) return chain.back().stage;
  if (chain.back().stage == stage) return chain.front().stage;
  return std::nullopt;
}

Bytes tied_message(const Layout& layout, std::uint32_t stage, std::uint32_t other) {
  const Degrees &a = layout.stages[stage].degrees, &b = layout.stages[other].degrees;
  // Held by every data and context rank, divided among tensor ranks.
  const std::uint32_t last = layout.stages[chain_of(layout).back().stage].degrees.tensor;
  return layout.tied_gradient * over(last, std::max(a.tensor, b.tensor));
}

std::vector<std::uint32_t> partners(const Degrees& own, std::uint32_t rank, const Degrees& other) {
  const Range tensor = range(own.tensor, rank % own.tensor, other.tensor);
  const Range context = range(own.context, rank / own.tensor % own.context, other.context);
  const Range data = range(own.data, rank / own.tensor / own.context, other.data);
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t d = data.first; d < data.first + data.count; ++d)
    for (std::uint32_t c = context.first; c < context.first + context.count; ++c)
      for (std::uint32_t t = tensor.first; t < tensor.first + tensor.count; ++t)
        ranks.push_back((d * other.context + c) * other.tensor + t);
  return ranks;
}

Result<std::vector<Crossing>> crossings_of(const Layout& layout) {
  std::vector<Crossing> crossings;
  const std::vector<ChunkPlace> chain = chain_of(layout);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    if (chain[i].stage == chain[i + 1].stage) continue;
    const Stage &from = layout.stages[chain[i].stage], &to = layout.stages[chain[i + 1].stage];
    const Degrees &a = from.degrees, &b = to.degrees;
    if (!divide(a.data, b.data) || !divide(a.context, b.context) || !divide(a.tensor, b.tensor))
      return fail(
          fmt::format("the degrees of {} and {} do not divide each other", from.name, to.name),
          "data, context and tensor degrees that divide each other");
    const auto& layers = from.chunks[chain[i].chunk].layers;
    const Bytes output = layers.empty() ? Bytes::b(0) : layers.back().output;
    // The ranks of one side together send what the ranks of the other side get.
    const double share = over(a.data, std::max(a.data, b.data)) *
                         over(a.context, std::max(a.context, b.context)) *
                         over(a.tensor, std::max(a.tensor, b.tensor));
    crossings.push_back({chain[i], chain[i + 1], output * share});
  }
  return crossings;
}

}  // namespace rehearse::strategies
