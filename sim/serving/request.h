// Requests to an inference server, and what became of them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.h"

namespace rehearse::serving {

struct Request {
  Picoseconds planned{0};   ///< when the client means to send it
  std::int64_t input = 1;   ///< tokens of the prompt; at least 1
  std::int64_t output = 1;  ///< tokens to generate; at least 1
  /// Names of the prompt's first parts, each of Rules::prefix_tokens tokens. Equal names at equal
  /// places mean equal tokens up to there, so a name represents all parts before it too.
  std::vector<std::uint64_t> prefix = {};
};

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

  friend bool operator==(const Served&, const Served&) = default;
};

}  // namespace rehearse::serving
