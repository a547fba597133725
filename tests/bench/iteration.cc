#include "tests/bench/iteration.h"

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::bench {
namespace {

using program::Program;
using program::ProgramOp;
using program::RankProgram;
using program::Task;

constexpr std::uint32_t kTensorGroup = 0, kDataGroup = 1;

class ProgramBuilder {
 public:
  ProgramBuilder(NamePool& names, std::uint64_t seed, double jitter)
      : names_(names), state_(seed), jitter_(jitter) {}

  std::uint32_t compute(const std::string& name, double us, std::uint32_t after) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const double unit = static_cast<double>(state_ >> 11) * 0x1p-53;  // 0 to 1
    const double factor = 1 + jitter_ * (2 * unit - 1);
    ProgramOp op{.name = names_.intern(name), .task = Task::kCompute};
    op.duration = Picoseconds::from(Seconds::us(us * factor));
    return add(op, after);
  }
  std::uint32_t all_reduce(const std::string& name, std::uint32_t group, Bytes bytes,
                           std::uint32_t after) {
    return add({.name = names_.intern(name),
                .task = Task::kCollective,
                .bytes = bytes,
                .collective = CollectiveKind::kAllReduce,
                .group = group},
               after);
  }
  std::uint32_t first(const std::string& name, double us) { return compute(name, us, kNone); }
  void also_after(std::uint32_t before) {  // the last op
    program_.dependencies.push_back(before);
    ++program_.first_dependency.back();
  }
  RankProgram take() { return std::move(program_); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t add(const ProgramOp& op, std::uint32_t after) {
    program_.ops.push_back(op);
    if (after != kNone) program_.dependencies.push_back(after);
    program_.first_dependency.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
    return static_cast<std::uint32_t>(program_.ops.size() - 1);
  }

  NamePool& names_;
  RankProgram program_;
  std::uint64_t state_;
  double jitter_;
};

RankProgram make_program(const Iteration& it, NamePool& names, std::uint64_t seed) {
  // Hidden size 4096, sequence 2048, one sequence, bf16: activations 16 MiB; the gradients of a
  // layer 12 · 4096² · 2 B over the tensor ranks.
  const Bytes activations = Bytes::mib(16);
  const Bytes gradients = Bytes::b(12.0 * 4096 * 4096 * 2 / it.tensor);
  ProgramBuilder b(names, seed, it.jitter);
  std::uint32_t at = b.first("embedding", 40);
  for (std::uint32_t layer = 0; layer < it.layers; ++layer) {
    const auto name = [&](const char* what) { return fmt::format("layer {} {}", layer, what); };
    at = b.compute(name("norm"), 12, at);
    at = b.compute(name("qkv"), 70, at);
    at = b.compute(name("attention"), 90, at);
    at = b.compute(name("projection"), 30, at);
    at = b.all_reduce(name("attention all_reduce"), kTensorGroup, activations, at);
    at = b.compute(name("up"), 95, at);
    at = b.compute(name("gelu"), 15, at);
    at = b.compute(name("down"), 95, at);
    at = b.all_reduce(name("mlp all_reduce"), kTensorGroup, activations, at);
  }
  at = b.compute("loss", 60, at);
  std::uint32_t reduced = at;
  for (std::uint32_t layer = it.layers; layer-- > 0;) {
    const auto name = [&](const char* what) {
      return fmt::format("layer {} backward {}", layer, what);
    };
    at = b.compute(name("down input"), 95, at);
    at = b.compute(name("down weight"), 95, at);
    at = b.compute(name("gelu"), 20, at);
    at = b.compute(name("up input"), 95, at);
    at = b.compute(name("up weight"), 95, at);
    at = b.all_reduce(name("mlp all_reduce"), kTensorGroup, activations, at);
    at = b.compute(name("projection"), 60, at);
    at = b.compute(name("attention"), 200, at);
    at = b.compute(name("qkv input"), 70, at);
    at = b.compute(name("qkv weight"), 70, at);
    at = b.compute(name("norm"), 25, at);
    const std::uint32_t done =
        b.all_reduce(name("attention all_reduce"), kTensorGroup, activations, at);
    reduced = b.all_reduce(name("gradients"), kDataGroup, gradients, at);
    at = done;
  }
  b.compute("norm of gradients", 100, at);
  b.also_after(reduced);
  b.compute("optimizer", 500, static_cast<std::uint32_t>(reduced + 1));
  return b.take();
}

}  // namespace

Program make_job(const Iteration& it) {
  const std::uint32_t ranks = it.tensor * it.data;
  Program job;
  for (std::uint32_t d = 0; d < it.data; ++d) {
    Program::Group& group = job.groups.emplace_back(Program::Group{fmt::format("tp[{}]", d), {}});
    for (std::uint32_t t = 0; t < it.tensor; ++t)
      group.members.push_back(RankId(d * it.tensor + t));
  }
  for (std::uint32_t t = 0; t < it.tensor; ++t) {
    Program::Group& group = job.groups.emplace_back(Program::Group{fmt::format("dp[{}]", t), {}});
    for (std::uint32_t d = 0; d < it.data; ++d) group.members.push_back(RankId(d * it.tensor + t));
  }
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (r == 0 || it.jitter > 0) job.programs.push_back(make_program(it, job.names, r + 1));
    job.program_of.push_back(static_cast<std::uint32_t>(job.programs.size() - 1));
    job.groups_of.push_back({r / it.tensor, it.data + r % it.tensor});
  }
  return job;
}

cluster::Cluster make_iteration_cluster(const Iteration& it) {
  const std::string text = fmt::format(
      "cluster:\n  device: h100_sxm5_80\n  devices_per_node: {}\n  nodes: {}\n"
      "  inter_node: {{kind: switch, links: {}, rate: 50 GB/s, latency: 5 us}}\n",
      it.tensor, it.data, it.tensor);
  Result<cluster::Cluster> cluster = cluster::parse_cluster(text, "iteration");
  REHEARSE_CHECK(cluster, "{}", to_string(cluster.error()));
  return std::move(*cluster);
}

}  // namespace rehearse::bench
