// What clients send: drawn requests, and traces of recorded ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "sim/base/result.h"
#include "sim/serving/request.h"

namespace rehearse::serving {

/// Uniform among the whole numbers from least to most.
struct Lengths {
  std::int64_t least = 1, most = 1;
};

/// Independent gaps, distributed by Gamma's law: 1 is a Poisson process, less is burstier.
struct Arrivals {
  double rate = 1;  ///< per second
  double shape = 1;
};

/// Without arrivals all are planned at 0. The same seed gives the same lengths at every rate.
std::vector<Request> draw(std::size_t count, const Lengths& input, const Lengths& output,
                          const std::optional<Arrivals>& arrivals, std::uint64_t seed);

/// Tokens per name of Request::prefix in Mooncake's traces.
inline constexpr std::int64_t kTracePrefixTokens = 512;

/// A file with a request per line, in order of arrival: CSV with the columns arrival_s, input_tokens
/// and output_tokens. Fails with the line of a request that is none.
Result<std::vector<Request>> load_requests(const std::filesystem::path& path);

}  // namespace rehearse::serving
