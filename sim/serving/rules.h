// How a server forms its steps. The servers that we know are settings of these rules.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace rehearse::serving {

/// Which requests a step takes first.
enum class Order : std::uint8_t {
  kDecodeFirst,   ///< those that run, in order of admission, then those that wait
  kPromptsApart,  ///< all prompts; decode rows only if there are none
};

/// A store for keys and values that leave the device (tiers.h).
struct Tier {
  std::int64_t blocks = 0;          ///< that it holds
  Seconds block = Seconds::s(0);    ///< to move one, in each direction
  Seconds latency = Seconds::s(0);  ///< after which a transfer arrives; the next one does not wait

  friend bool operator==(const Tier&, const Tier&) = default;
};

struct Rules {
  std::int64_t tokens_per_step = 8192;
  std::int64_t most_rows = 256;  ///< requests that run at the same time
  bool chunked = true;           ///< a prompt that exceeds what is left of a step is cut
  Order order = Order::kDecodeFirst;

  /// A request is admitted if the free blocks hold what it needs now. With a reserve, they must
  /// hold its whole output and this share of the outputs that running requests still lack. The
  /// share falls by `reserve_decay` per decode step to its least, and rises after a preemption to
  /// the share of their outputs that the running requests have used (SGLang's new_token_ratio). A
  /// reserve of 1 makes preemptions impossible.
  double reserve = 0, least_reserve = 0, reserve_decay = 0;

  /// Speculation: drafts propose this many more tokens for a decode row. Each has the chance to be
  /// accepted if all before it are. A step gives those and the token that follows them.
  std::vector<double> drafts = {};

  bool overlapped = true;             ///< the host prepares a step while the one before runs
  std::int64_t receive_interval = 1;  ///< a busy server looks for new requests every n-th step

  /// Requests of the lowest Request::priority are admitted first, and those of the highest lose their blocks
  /// first; without, all are equal.
  bool by_priority = false;
  /// A request leaves when the server looks for new ones, once its deadline has passed.
  bool drops = false;

  std::int64_t blocks = 1;  ///< of keys and values
  std::int64_t block_tokens = 16;
  bool prefix_cache = false;
  std::int64_t prefix_tokens = 16;  ///< per name of Request::prefix; a multiple of block_tokens
  /// Those that are closer to the device go first. They hold what the prefix cache loses, or, without
  /// one, the blocks of preempted requests.
  std::vector<Tier> tiers = {};
  bool writes_through = false;  ///< parts of prompts go to the tiers when they are computed
  bool keeps_blocks = false;    ///< a request that ended keeps its blocks until they are released
};

/// Blocks that hold this many tokens.
constexpr std::int64_t blocks_for(std::int64_t tokens, std::int64_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace rehearse::serving
