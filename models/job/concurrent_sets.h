// Concurrent sets: groups that run the same collective at the same time, and its time on their
// shared links.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "models/job/device_patterns.h"
#include "models/job/link_paths.h"
#include "models/job/lower.h"

namespace rehearse::job {

inline constexpr std::uint64_t kMostMessages = 200'000;

class ConcurrentSets {
 public:
  /// REQUIRES: all outlive this object.
  ConcurrentSets(const cluster::Cluster& cluster, LinkPaths& paths, const Run& run)
      : cluster_(cluster), paths_(paths), run_(run), patterns_(cluster) {}

  /// The time of the concurrent groups when all begin together, until the last message has arrived.
  /// Concurrent groups that share no link, directly or through others, are run apart, and only one
  /// of those that are laid out alike is run. Nothing if some take longer than others by more than
  /// rounding, or if a link that they use changes over time. REQUIRES: flows outlive this object.
  ///
  /// With more than kMostMessages messages in long, regular flows (rings), the first messages are
  /// simulated and the others follow at their pace.
  Result<std::optional<Picoseconds>> time(std::span<const ConcurrentGroup> concurrent_set);

 private:
  using Set = std::vector<const ConcurrentGroup*>;
  /// The links as messages see them, numbered by their first use.
  using Shape = std::vector<double>;

  /// The shortest and the longest time among groups; nothing if a link changes over time.
  struct Times {
    Picoseconds least, most;
  };
  /// A set of groups on nodes, without the numbers of these nodes.
  using Pattern = std::pair<std::vector<std::uint32_t>, Shape>;

  std::vector<Set> on_other_nodes(const Set& concurrent_set) const;
  Pattern pattern_of(const Set& concurrent_groups);
  Result<std::optional<Times>> times(const Set& concurrent_groups);
  std::vector<Set> apart(const Set& concurrent_set);
  Shape shape_of(const Set& concurrent_groups);
  Result<Picoseconds> run(const Set& concurrent_groups);
  Result<Picoseconds> run_all(const Set& concurrent_groups);

  const cluster::Cluster& cluster_;
  LinkPaths& paths_;
  const Run& run_;
  DevicePatterns patterns_;
  std::map<Shape, Picoseconds> known_;
  std::map<Pattern, std::optional<Times>> known_patterns_;
};

}  // namespace rehearse::job
