#include "sim/serving/request.h"

#include "sim/base/random.h"

namespace rehearse::serving {

std::vector<std::uint64_t> names_of(std::span<const Request> requests, std::uint32_t request,
                                    std::int64_t parts) {
  std::uint32_t first = request;
  while (requests[first].follows) --first;
  const auto count = static_cast<std::size_t>(parts);
  std::vector<std::uint64_t> names = requests[first].prefix;
  names.resize(std::min(names.size(), count));
  for (std::size_t i = names.size(); i < count; ++i) names.push_back(mixed(mixed(~first) ^ i));
  return names;
}

}  // namespace rehearse::serving
