// Families: groups that do the same collective at the same time, and what that costs on the links
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

class Families {
 public:
  /// REQUIRES: all outlive this object.
  Families(LinkPaths& paths, const Run& run) : paths_(paths), run_(run) {}

  /// How long the meetings take when all begin together, until the last message has come. Meetings
  /// that share no link, through others either, are run apart, and of those that are laid out alike
  /// one. Nothing where some take longer than others by more than rounding, and where a link that
  /// they use changes over time. REQUIRES: lanes outlive this object.
  ///
  /// Of more than kMostMessages, where all lanes are long rows of messages that go on at an even
  /// pace (rings), the first ones are run, and the others follow at the pace of those.
  Result<std::optional<Picoseconds>> time(std::span<const Meeting> family);

 private:
  using Set = std::vector<const Meeting*>;
  /// How messages see the links, which are numbered by their first use.
  using Shape = std::vector<double>;

  std::vector<Set> apart(std::span<const Meeting> family);
  Shape shape_of(const Set& meetings);
  Result<Picoseconds> run(const Set& meetings);
  Result<Picoseconds> run_all(const Set& meetings);

  LinkPaths& paths_;
  const Run& run_;
  std::map<Shape, Picoseconds> known_;
};

}  // namespace rehearse::job
