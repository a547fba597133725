// Link sharing: communication of several stages at the same time, without a graph.
//
// In the orders of the stages, communication alternates with computing many times (find_slower). At
// the end of a step it is one burst or a few for each stage (ends_of). A burst is a stretch of a stage's time with communication in it. Alone it takes its length, and
// keeps each link that it uses busy for a share of that. Bursts of different stages go on at the
// same time; those whose shares of a link have a sum above one slow each other down to equal
// speeds, as messages divide a link (max-min fair). Communication is taken as spread evenly over
// its burst.
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
  std::vector<After> after = {};    ///< it begins no earlier than so much after their ends
  std::vector<double> shares = {};  ///< by link, at most 1; empty: it uses none
};

/// When each burst ends, in seconds. REQUIRES: no bursts that wait for each other; shares for each
/// of `links` links, or none.
std::vector<double> ends_of(std::span<const Burst> bursts, std::size_t links);

/// What a stage does on one stream in its order.
struct LinkUse {
  double time = 0;                ///< seconds of communication, with all links for itself
  std::vector<double> busy = {};  ///< by link: seconds of it; empty where it is on none
  double slower = 1;              ///< how many times as long it takes
};
struct LinkUser {
  double working;  ///< seconds of the order in which the stage does not wait for others
  double length;   ///< seconds of the order
  std::vector<LinkUse> streams;
};

/// Sets `slower`; returns whether some is above 1.
///
/// Stages are taken as independent of each other. While one is on a link, another is with the
/// probability of its time on the link over its length, and both divide it:
///   slower = max over links of (own time on the link / own communication + sum over other stages
///                               of their slower time on it / their length)
/// and lengths grow as working times do. Found by iteration. The mean-field equations of closed
/// queueing networks with processor sharing (Bard and Schweitzer, 1979) are of this form. Stages
/// that evade each other are quicker: random layouts are at most a third too long.
bool find_slower(std::span<LinkUser> users, std::size_t links);

}  // namespace rehearse::step
