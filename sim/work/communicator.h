// The processes that an MPI launcher started together, as a plain interface.
//
// MPI is in its own library, librehearse_mpi.so, loaded only if a launcher started the
// process: everything builds and runs without it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/base/result.h"

namespace rehearse::work {

/// How a launcher started this process, as its environment says.
struct Launch {
  int rank = 0;
  int size = 1;
  int on_this_machine = 1;  ///< ranks
};

/// Nothing for a process that was started alone, or as the only rank.
std::optional<Launch> launched();

/// Whether this process is the one that prints and writes files.
bool leads();

struct Message {
  int from;
  std::string text;
};

/// All members of a communicator call join_team, and then leave, each once. Used by one thread.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string machine() const = 0;  ///< its name
  /// Does not wait. Messages between two ranks arrive in their order.
  virtual void send(int to, std::string text) = 0;
  /// The next received message, if any. Does not wait.
  virtual std::optional<Message> take() = 0;
  /// Waits until sent data is in transit, and for the others to leave. A process that ends
  /// without it makes the launcher end all.
  virtual void leave() = 0;
};

/// Null for a process that was started alone. Fails where the communicator cannot be joined.
Result<std::unique_ptr<Communicator>> join_communicator();

/// Whether this build has the library. Fails with the missing part.
Status check_mpi();

/// The only symbol of the library.
inline constexpr char kMakeCommunicator[] = "rehearse_mpi_communicator";
using MakeCommunicator = Communicator*();

}  // namespace rehearse::work
