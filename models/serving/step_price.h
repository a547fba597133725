// The price of a step of an inference server: kernels of each layer, by the tokens, rows and
// contexts of the step (kernels.h), and what the server adds (server.h).
//
//   device = max(kernels · (Σ laws + (prompts - 1) · min(1, prompt tokens / 512) · experts)
//                + passes · 2 · tokens · hidden / (0.8 · memory rate)
//                + Σ layers (glue + 2 ready), launch · layers without graphs)
//            + step + row · rows
//
// With state off the device (offload.h), a step takes the longest of the device, the loads and
// stores over its link, and the drives.
//
// Stages of a pipeline serve groups of the rows in turn: a step has a group's tokens pass all
// stages. Ranks of `data` that share experts run steps of equal size together. All-reduces over
// several nodes are those of a node and a ring of a device's share over its counterparts.
// docs/concepts/serving-price.md has a worked example.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/serving/kernels.h"
#include "models/serving/offload.h"
#include "models/serving/served_model.h"
#include "models/serving/server.h"
#include "models/workload/transformer.h"
#include "sim/base/estimate.h"
#include "sim/cluster/catalog.h"
#include "sim/serving/step.h"

namespace rehearse::serving {

/// What proposes tokens. It computes the tokens of each step once, and then proposes all but the
/// first of its tokens one after another. Without a model it is an extra layer.
struct Draft {
  std::optional<workload::Transformer> model = {};
  std::int64_t tokens = 1;
};

/// Nodes of a cluster, and the path from a device of one to a device of another.
struct NodePaths {
  std::uint32_t devices = 8;  ///< of a node
  ByteRate rate = ByteRate::gb_per_s(50);
  Seconds latency = Seconds::s(0);
};

/// A served model on a device, as a job describes it.
struct Deployment {
  workload::Transformer model;
  std::string device;  ///< a name in the catalog
  Framework framework = Framework::kVllm;
  std::string version = {};  ///< empty: the newest known
  Precision precision = {};
  ServingPlan plan = {};
  std::optional<double> graphs = {};  ///< replaces Server::graphs
  std::optional<Draft> draft = {};    ///< proposals without one cost nothing
  std::optional<Offload> offload = {};
  std::optional<NodePaths> nodes = {};  ///< absent: all ranks are in one node
};

/// Fails where a plan has stages, which divide no draft. REQUIRES: a draft.
Result<ServedModel> served_draft(const Deployment& deployment);

/// The parts of a step, in seconds.
struct StepParts {
  double products = 0, attention = 0, experts = 0, communication = 0, head = 0;
  double kernels() const { return products + attention + experts + communication + head; }
};

class StepPrice final : public StepPricer {
 public:
  /// Fails for a device that is not in the catalog, for an offload with several devices, a draft or
  /// drives of unknown rate, and as served() and server_for() do.
  static Result<StepPrice> of(const Deployment& deployment);

  StepTime price(const Step& step) const override;
  RequestTime request(std::int64_t input_tokens) const override;
  Estimate<double> reach() const override;
  /// The same of the time to the first token, where it is wider than that of runs at the ends of
  /// reach().
  Estimate<double> reach_of_first_token() const;

  /// Kernels alone, before the server's factor.
  StepParts parts(const Step& step) const;
  const ServedModel& model() const { return model_; }
  const Server& server() const { return server_; }
  const ServingPlan& plan() const { return plan_; }
  /// One line each, for people.
  std::vector<std::string> sources() const;

 private:
  StepPrice(Kernels kernels, ServedModel model, Server server, const ServingPlan& plan)
      : kernels_(std::move(kernels)),
        model_(std::move(model)),
        server_(std::move(server)),
        plan_(plan) {}

  Estimate<double> widened(double low, double high) const;
  StepParts parts_of(const ServedModel& model, const Step& step) const;
  double drafting(const Step& step) const;
  /// Over the tensor ranks.
  double all_reduce(double bytes) const;
  /// Of ranks that divide keys and values by tokens: they gather the queries of all of them, attend to
  /// their own tokens, gather the normalisers of all, and add up the results of their own heads.
  double divided_attention(const AttentionShape& attention, double queries) const;
  /// Of pairs of tokens and experts, and of their results, among the ranks that share experts.
  double exchange(double pairs, double hidden) const;
  Seconds with_transfers(Seconds device, const Step& step) const;
  /// What a model's layers add to its kernels.
  double layers_of(const ServedModel& model) const;

  Kernels kernels_;
  ServedModel model_;
  Server server_;
  ServingPlan plan_;
  std::optional<Offload> offload_ = {};
  ByteRate host_link_ = ByteRate::gb_per_s(1);  ///< for `offload_`
  std::optional<NodePaths> nodes_ = {};
  std::optional<ServedModel> draft_ = {};
  std::int64_t draft_tokens_ = 0;
  CacheFormat cache_ = CacheFormat::kBf16;
  double graphs_ = 0;
};

}  // namespace rehearse::serving
