#include "strategies/prices.h"

#include <algorithm>

namespace rehearse::strategies {

std::vector<std::uint32_t> kinds_of(const Prices& prices, std::uint32_t first,
                                    std::uint32_t count) {
  std::vector<std::uint32_t> kinds;
  for (std::uint32_t rank = first; rank < first + count; ++rank)
    if (const std::uint32_t kind = prices.kind_of(rank);
        std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      kinds.push_back(kind);
  return kinds;
}

}  // namespace rehearse::strategies
