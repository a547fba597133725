#include "strategies/boundaries.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::strategies {

using workload::Degrees;
using workload::Layout;
using workload::Stage;

namespace {

bool divide(std::uint32_t a, std::uint32_t b) { return std::max(a, b) % std::min(a, b) == 0; }

/// Of one axis: who `index` of `own` exchanges with among `other`.
struct Range {
  std::uint32_t first, count;
};
Range range(std::uint32_t own, std::uint32_t index, std::uint32_t other) {
  if (other > own) return {index * (other / own), other / own};
  return {index / (own / other), 1};
}

double over(std::uint32_t a, std::uint32_t b) { return static_cast<double>(a) / b; }

}  // namespace

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

Result<std::vector<Crossing>> crossings_of(const Layout& layout, Boundary boundary) {
  std::vector<Crossing> crossings;
  const std::vector<ChunkPlace> chain = chain_of(layout);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    if (chain[i].stage == chain[i + 1].stage) continue;
    const Stage &from = layout.stages[chain[i].stage], &to = layout.stages[chain[i + 1].stage];
    const Degrees &a = from.degrees, &b = to.degrees;
    if (!divide(a.data, b.data) || !divide(a.context, b.context) || !divide(a.tensor, b.tensor))
      return fail(
          fmt::format("{} and {} have degrees that do not divide each other", from.name, to.name),
          "data, context and tensor degrees that do");
    const auto& layers = from.chunks[chain[i].chunk].layers;
    const Bytes output = layers.empty() ? Bytes::b(0) : layers.back().output;
    const std::uint32_t tensor = std::max(a.tensor, b.tensor);
    // Samples and tokens are divided; what the ranks of a tensor group hold, `boundary` says.
    const double share =
        over(a.data, std::max(a.data, b.data)) * over(a.context, std::max(a.context, b.context));
    Crossing crossing{chain[i], chain[i + 1], output * share, Bytes::b(0), Bytes::b(0)};
    switch (boundary) {
      case Boundary::kWhole:
        crossing.message = crossing.message * (over(b.tensor, tensor));
        break;
      case Boundary::kScattered:
        crossing.message = crossing.message / tensor;
        // All that a rank of the receiving side gets and its neighbours got.
        if (b.tensor > 1)
          crossing.gathered_forward = output * (over(a.data, b.data) * over(a.context, b.context));
        if (a.tensor > 1) crossing.gathered_back = output;
        break;
      case Boundary::kDivided:
        crossing.message = crossing.message * over(a.tensor, tensor);
        break;
    }
    crossings.push_back(crossing);
  }
  return crossings;
}

}  // namespace rehearse::strategies
