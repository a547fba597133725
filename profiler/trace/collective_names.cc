#include "profiler/trace/collective_names.h"

#include <cctype>
#include <string>

namespace rehearse::trace {
namespace {

/// Lower case letters only: "nccl:_all_gather_base" -> "ncclallgatherbase".
std::string letters(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (std::isalpha(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Word {
  std::string_view text;
  CollectiveKind kind;
};

// "reduce" ends the list: it begins or ends other names.
constexpr Word kWords[] = {
    {"allreduce", CollectiveKind::kAllReduce}, {"reducescatter", CollectiveKind::kReduceScatter},
    {"allgather", CollectiveKind::kAllGather}, {"alltoall", CollectiveKind::kAllToAll},
    {"broadcast", CollectiveKind::kBroadcast}, {"sendrecv", CollectiveKind::kSendRecv},
    {"barrier", CollectiveKind::kBarrier},     {"reduce", CollectiveKind::kReduce},
};

}  // namespace

std::optional<CollectiveKind> collective_from_framework(std::string_view name) {
  std::string word = letters(name);
  for (const std::string_view backend : {"nccl", "gloo", "mpi", "ucc"})
    if (word.starts_with(backend)) word.erase(0, backend.size());
  for (const Word& w : kWords)
    if (word.starts_with(w.text)) return w.kind;
  // Point to point comes as one or the other: "send", "recv_any", "isend".
  for (const std::string_view half : {"send", "recv", "isend", "irecv", "batchsend"})
    if (word.starts_with(half)) return CollectiveKind::kSendRecv;
  return std::nullopt;
}

bool is_communication_kernel(std::string_view name) {
  for (const std::string_view prefix : {"nccl", "rccl", "void nccl", "ncclx", "oneccl"})
    if (name.starts_with(prefix)) return true;
  // vLLM's and TensorRT-LLM's own all-reduce, NVSHMEM, DeepEP's dispatch and combine.
  for (const std::string_view part :
       {"cross_device_reduce", "nvshmem", "::internode::", "::intranode::"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

std::optional<CollectiveKind> collective_from_kernel(std::string_view name) {
  if (!is_communication_kernel(name)) return std::nullopt;
  if (name.find("cross_device_reduce") != std::string_view::npos) return CollectiveKind::kAllReduce;
  if (name.find("node::dispatch") != std::string_view::npos ||
      name.find("node::combine") != std::string_view::npos)
    return CollectiveKind::kAllToAll;  // tokens to experts and back
  // After "ncclKernel_", "ncclDevKernel_" or "nccl" and before the algorithm.
  const std::string word = letters(name.substr(0, name.find('(')));
  for (const Word& w : kWords)
    if (const std::size_t at = word.find(w.text); at != std::string::npos) return w.kind;
  return std::nullopt;
}

}  // namespace rehearse::trace
