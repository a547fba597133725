// A communicator over MPI. Only in librehearse_mpi.so.
#include <climits>
#include <cstdio>
#include <list>

#include <mpi.h>

#include "sim/work/communicator.h"

namespace rehearse::work {
namespace {

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::string machine() const override {
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    MPI_Get_processor_name(name, &length);
    return name;
  }

  void send(int to, std::string text) override {
    if (text.size() > INT_MAX) {  // MPI counts in int
      std::fprintf(stderr, "rehearse: a result of more than 2 GiB cannot be sent\n");
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    drop_sent();
    Sent& sent = sent_.emplace_back(Sent{std::move(text), MPI_REQUEST_NULL});
    MPI_Isend(sent.text.data(), static_cast<int>(sent.text.size()), MPI_BYTE, to, 0, MPI_COMM_WORLD,
              &sent.request);
  }

  std::optional<Message> take() override {
    drop_sent();
    int there = 0, size = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, &status);
    if (!there) return std::nullopt;
    MPI_Get_count(&status, MPI_BYTE, &size);
    Message message{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
    MPI_Recv(message.text.data(), size, MPI_BYTE, message.from, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return message;
  }

  void leave() override {
    // A large message is sent only once it is received, so a leaving member receives messages that
    // nobody requested.
    MPI_Request all = MPI_REQUEST_NULL;
    for (int left = 0, begun = 0; !left;) {
      while (take()) {
      }
      if (!begun && sent_.empty()) begun = MPI_Ibarrier(MPI_COMM_WORLD, &all) == MPI_SUCCESS;
      if (begun) MPI_Test(&all, &left, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
  }

 private:
  struct Sent {
    std::string text;
    MPI_Request request;
  };
  void drop_sent() {
    std::erase_if(sent_, [](Sent& sent) {
      int done = 0;
      MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }

  int rank_ = 0, size_ = 1;
  std::list<Sent> sent_;  // in place until they are gone
};

}  // namespace
}  // namespace rehearse::work

extern "C" rehearse::work::Communicator* rehearse_mpi_communicator() {
  return new rehearse::work::MpiCommunicator;
}
