#include "strategies/makeup.h"

#include <algorithm>
#include <utility>

namespace rehearse::strategies {

void MakeupWriter::add(std::uint32_t chunk, std::uint32_t layer, const PieceOps& ops) {
  const auto same = std::find_if(open_.begin(), open_.end(), [&](const ComputedPiece& piece) {
    return piece.chunk == chunk && piece.layer == layer && piece.ops == ops;
  });
  if (same != open_.end())
    ++same->times;
  else
    open_.push_back({chunk, layer, ops, 1});
}

void MakeupWriter::end(std::uint32_t op) {
  const auto next = static_cast<std::uint32_t>(makeup_.mixtures.size());
  const auto [known, fresh] = known_.try_emplace(open_, next);
  if (fresh) makeup_.mixtures.push_back(open_);
  makeup_.mixture_of.resize(op, kComputesNothing);
  makeup_.mixture_of.push_back(known->second);
  open_.clear();
}

Makeup MakeupWriter::take(std::size_t ops) {
  makeup_.mixture_of.resize(ops, kComputesNothing);
  return std::move(makeup_);
}

}  // namespace rehearse::strategies
