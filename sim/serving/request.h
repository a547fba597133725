// Requests to an inference server, and what became of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/time.h"

namespace rehearse::serving {

struct Request {
  Picoseconds planned{0};   ///< when the client means to send it, at the earliest
  std::int64_t input = 1;   ///< tokens of the prompt; at least 1
  std::int64_t output = 1;  ///< tokens to generate; at least 1
  /// Names of the prompt's first parts, each of Rules::prefix_tokens tokens. Equal names at equal
  /// places mean equal tokens up to there, so a name represents all parts before it too.
  std::vector<std::uint64_t> prefix = {};
  /// A later turn of a conversation: the client sends it after the end of the request before it in the
  /// list, and its prompt begins with the prompt and the answer of that one, and then has new tokens.
  bool follows = false;
  /// From the end of the request that it waits for, to its sending.
  Picoseconds think{0};
  std::int32_t priority = 0;  ///< its class: the lowest number goes first
  Picoseconds deadline{0};    ///< from its sending to its last token; 0: none
};

/// The end of the planned arrivals.
inline Picoseconds last_planned(std::span<const Request> requests) {
  Picoseconds last{0};
  for (const Request& request : requests) last = std::max(last, request.planned);
  return last;
}

/// Whether a request has a turn before or after it.
inline bool converses(std::span<const Request> requests, std::uint32_t request) {
  return requests[request].follows ||
         (request + 1 < requests.size() && requests[request + 1].follows);
}

/// Names of the first parts of a request's keys and values: those of its prefix, then names that no other
/// request has but the turns of its conversation. These begin with the prefix of its first turn.
std::vector<std::uint64_t> names_of(std::span<const Request> requests, std::uint32_t request,
                                    std::int64_t parts);
/// The first parts of these names, then those that only requests of this number have.
std::vector<std::uint64_t> names_from(std::uint32_t request, std::vector<std::uint64_t> names,
                                      std::int64_t parts);

/// What a client measured of one request. Instants are those of the run.
struct Served {
  Picoseconds sent{0};
  Picoseconds queued{0};     ///< known to the scheduler
  Picoseconds scheduled{0};  ///< start of the first step with a token of it
  Picoseconds prefilled{0};  ///< its prompt is computed
  Picoseconds room{0};       ///< of pools (pools.h): the second one has blocks for its prompt
  Picoseconds arrived{0};    ///< of pools: the second one has its keys and values
  Picoseconds first{0};      ///< its first token is out
  Picoseconds last{0};       ///< its last token is out
  std::int64_t input = 0, output = 0;
  std::int64_t reused = 0;  ///< prompt tokens that the prefix cache had
  std::int64_t loaded = 0;  ///< those of them that came from tiers
  std::int32_t priority = 0;
  Picoseconds deadline{0};
  /// It left the server at its deadline: `last` is when, `output` has its tokens, and instants that it did not
  /// reach are 0.
  bool dropped = false;

  friend bool operator==(const Served&, const Served&) = default;
};

}  // namespace rehearse::serving
