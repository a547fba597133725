// Link sharing: communication of several stages at the same time, without a graph.
//
// In the orders of the stages, communication alternates with computing many times (find_slower). At
// the end of a step it is one burst or a few for each stage (ends_of). A burst is a stretch of a
// stage's time that contains communication. Alone, it takes its length and keeps each link that it
// uses busy for a share of that length. Bursts of different stages run at the same time; those
// whose shares of a link have a sum above one slow each other down to equal speeds, as messages
// divide a link (max-min fair). Communication is assumed to be spread evenly over its burst.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::step {

struct Burst {
  struct After {
    std::uint32_t burst;
    double later;  ///< seconds
  };
  double begin;                     ///< in seconds; it begins no earlier
  double length;                    ///< in seconds, alone
  std::vector<After> after = {};    ///< it begins no earlier than this long after their ends
  std::vector<double> shares = {};  ///< by link, at most 1; empty: it uses none
};

/// The end of each burst, in seconds. REQUIRES: no bursts that wait for each other; shares for each
/// of `links` links, or none.
std::vector<double> ends_of(std::span<const Burst> bursts, std::size_t links);

/// The use of one stream by a stage in its order.
struct LinkUse {
  double time = 0;                ///< seconds of communication, if it has all links alone
  std::vector<double> busy = {};  ///< by link: busy seconds; empty if it uses none
  double slower = 1;              ///< the factor by which it takes longer
};
struct LinkUser {
  double working;  ///< seconds of the order in which the stage does not wait for others
  double length;   ///< seconds of the order
  std::vector<LinkUse> streams;
};

/// Sets `slower`; returns whether some is above 1.
///
/// Stages are assumed to be independent of each other. While one is on a link, another is on it
/// with the probability of its time on the link over its length, and both divide the link:
///   slower = max over links of (own time on the link / own communication + sum over other stages
///                               of their slower time on it / their length)
/// and lengths grow as working times do. The solution is found by iteration. The mean-field
/// equations of closed queueing networks with processor sharing (Bard and Schweitzer, 1979) have
/// this form. Stages that evade each other are faster: random layouts are at most a third too long.
bool find_slower(std::span<LinkUser> users, std::size_t links);

}  // namespace rehearse::step
