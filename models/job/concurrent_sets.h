// Concurrent sets: groups that do the same collective at the same time, and their time on the links
// that they share.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "models/job/link_paths.h"
#include "models/job/lower.h"

namespace rehearse::job {

inline constexpr std::uint64_t kMostMessages = 200'000;

class ConcurrentSets {
 public:
  /// REQUIRES: all outlive this object.
  ConcurrentSets(LinkPaths& paths, const Run& run) : paths_(paths), run_(run) {}

  /// How long the concurrent groups take when all begin together, until the last message has come.
  /// Concurrent groups
  /// that share no link, through others either, are run apart, and of those that are laid out alike
  /// one. Nothing where some take longer than others by more than rounding, and where a link that
  /// they use changes over time. REQUIRES: flows outlive this object.
  ///
  /// Of more than kMostMessages, where all flows are long rows of messages that go on at an even
  /// pace (rings), the first ones are run, and the others follow at the pace of those.
  Result<std::optional<Picoseconds>> time(std::span<const ConcurrentGroup> concurrent_set);

 private:
  using Set = std::vector<const ConcurrentGroup*>;
  /// How messages see the links, which are numbered by their first use.
  using Shape = std::vector<double>;

  std::vector<Set> apart(std::span<const ConcurrentGroup> concurrent_set);
  Shape shape_of(const Set& concurrent_groups);
  Result<Picoseconds> run(const Set& concurrent_groups);
  Result<Picoseconds> run_all(const Set& concurrent_groups);

  LinkPaths& paths_;
  const Run& run_;
  std::map<Shape, Picoseconds> known_;
};

}  // namespace rehearse::job
