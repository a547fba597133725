// Which replica of a server gets a request.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace rehearse::serving {

/// The next replica in turn, or the one with the least load. The load is the number of requests
/// that it was sent and has not ended; with kPrefix the prompt tokens of them, and of the new one,
/// without those of prefixes that it was sent before. Of equal loads the next in turn is chosen.
enum class Routing : std::uint8_t { kRoundRobin, kLeastOutstanding, kPrefix };
inline constexpr std::string_view kRoutingNames[] = {"round_robin", "least_outstanding", "prefix"};

/// Knows what it sent and what ended, and nothing of a replica's queue or cache: a prefix that a
/// replica evicted still attracts requests.
class Router {
 public:
  /// `prefix_tokens`: per name of Request::prefix.
  Router(Routing routing, std::int64_t prefix_tokens)
      : routing_(routing), prefix_tokens_(prefix_tokens) {}

  /// Another replica, which gets requests while it is open.
  void add() { replicas_.emplace_back(); }
  void open(std::size_t replica) { replicas_[replica].open = true; }
  void close(std::size_t replica) { replicas_[replica].open = false; }

  /// REQUIRES: an open replica.
  std::size_t send(std::uint32_t id, std::int64_t input, std::span<const std::uint64_t> prefix);
  void end(std::size_t replica, std::uint32_t id);
  /// Whether all requests that this replica was sent ended.
  bool idle(std::size_t replica) const { return replicas_[replica].sent.empty(); }

 private:
  struct Replica {
    bool open = false;
    std::int64_t load = 0;
    std::unordered_map<std::uint32_t, std::int64_t> sent = {};  ///< load by request; never iterated
    std::unordered_set<std::uint64_t> prefixes = {};
  };
  std::int64_t load_of(std::int64_t input, std::span<const std::uint64_t> prefix,
                       const Replica& replica) const;

  Routing routing_;
  std::int64_t prefix_tokens_;
  std::vector<Replica> replicas_ = {};
  std::size_t next_ = 0;
};

}  // namespace rehearse::serving
