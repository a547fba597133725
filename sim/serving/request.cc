#include "sim/serving/request.h"

#include "sim/base/random.h"

namespace rehearse::serving {

std::vector<std::uint64_t> names_of(std::span<const Request> requests, std::uint32_t request,
                                    std::int64_t parts) {
  std::uint32_t first = request;
  while (requests[first].follows) --first;
  return names_from(first, requests[first].prefix, parts);
}

std::vector<std::uint64_t> names_from(std::uint32_t request, std::vector<std::uint64_t> names,
                                      std::int64_t parts) {
  const auto count = static_cast<std::size_t>(parts);
  names.resize(std::min(names.size(), count));
  for (std::size_t i = names.size(); i < count; ++i) names.push_back(mixed(mixed(~request) ^ i));
  return names;
}

}  // namespace rehearse::serving
