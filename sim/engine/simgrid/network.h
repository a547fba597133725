// The network of SimGrid with a plain interface that is independent of graphs.
//
// It is a library of its own, librehearse_simgrid.so, loaded by the processes that need it: linking
// SimGrid makes every start of a program 30 to 45 ms longer. SimGrid allows only one network per
// process.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::engine::simgrid_back_end {

struct Link {
  double rate;    ///< above zero
  bool per_flow;  ///< every flow may have this rate, whatever others do: a cap
};

struct Platform {
  std::vector<Link> links;
  std::vector<std::vector<std::uint32_t>> routes;  ///< links; at least one each
};

/// The functions that a network calls while it runs.
class Client {
 public:
  virtual void arrived(std::uint32_t flow) = 0;
  virtual void woken() = 0;

 protected:
  ~Client() = default;
};

class Network {
 public:
  virtual ~Network() = default;
  virtual double now() const = 0;  ///< seconds
  /// REQUIRES: no live flow has this number; work >= 1, below 2^53. Rounded to a whole number.
  virtual void begin(std::uint32_t flow, std::uint32_t route, double work) = 0;
  /// Ends a flow before its time; returns the work that is left. arrived() is not called.
  virtual double take_away(std::uint32_t flow) = 0;
  /// REQUIRES: above zero.
  virtual void set_rate(std::uint32_t link, double rate) = 0;
  /// Calls woken() once at this time or, if it is past, soon. A second call replaces the first.
  virtual void wake_at(double seconds) = 0;
  /// Runs until no flow is live and no wake is due.
  virtual void run(Client& client) = 0;
};

/// The only symbol of the library.
inline constexpr char kMakeNetwork[] = "rehearse_simgrid_network";
using MakeNetwork = Network*(const Platform&);

}  // namespace rehearse::engine::simgrid_back_end
