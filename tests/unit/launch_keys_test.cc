// Launch configurations: every flag and key that is emitted is one that the framework has, with a
// value of its type, and what frameworks demand of each other's flags holds. Names and types were
// looked up in the files that docs/concepts/planning.md names.
#include "tests/unit/launch_keys.h"

#include <map>
#include <regex>
#include <set>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/planning/emit.h"
#include "sim/cluster/read_cluster.h"
#include "tests/support/tiny_models.h"

namespace rehearse::cli {
namespace {

using strategies::Optimizer;
using strategies::Recompute;
using workload::Dtype;

/// Key and value, as in a file of the framework.
using Found = std::map<std::string, std::string>;

/// The contents of the arrays of the script.
Found flags_of(const std::string& script) {
  Found found;
  std::istringstream lines(script);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with("=(")) inside = true;
    if (line == ")") inside = false;
    if (!inside || line.find("--") != 2) continue;
    const std::size_t end = line.find(' ', 2);
    found[line.substr(2, end - 2)] = end == std::string::npos ? "" : line.substr(end + 1);
  }
  return found;
}

void add_keys(const nlohmann::json& json, const std::string& prefix, Found& found) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      add_keys(value, prefix + key + ".", found);
    else
      found[prefix + key] = value.dump();
  }
}
Found json_keys_of(const std::string& text) {
  Found found;
  add_keys(nlohmann::json::parse(text), "", found);
  return found;
}

Found toml_keys_of(const std::string& text) {
  Found found;
  std::istringstream lines(text);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const std::size_t equals = line.find(" = ");
    REQUIRE(equals != std::string::npos);
    found[section + "." + line.substr(0, equals)] = line.substr(equals + 3);
  }
  return found;
}

void check_known(const Found& found, const Keys& keys, std::set<std::string>& seen) {
  for (const auto& [key, value] : found) {
    INFO(key << " = " << value);
    const auto known = keys.find(key);
    REQUIRE(known != keys.end());
    CHECK(std::regex_match(value, std::regex(known->second)));
    seen.insert(key);
  }
}

cluster::Cluster cluster_of_eight() {
  Result<cluster::Cluster> cluster = cluster::parse_cluster(
      "cluster: {device: a100_sxm4_80, devices_per_node: 8, nodes: 1, intra_node: nvswitch}",
      "cluster");
  REQUIRE(cluster);
  return std::move(*cluster);
}

workload::Transformer llama() {
  return {.name = "llama",
          .hidden = 4096,
          .layers = 32,
          .heads = 32,
          .kv_heads = 8,
          .feed_forward = 14336,
          .vocabulary = 128256,
          .sequence = 1024,
          .gated = true,
          .activation = workload::Activation::kSilu,
          .norm = workload::Norm::kRms,
          .positions = workload::Positions::kRotary,
          .tied_embedding = false,
          .linear_bias = false,
          .query_norm = true};
}

workload::Transformer mixture() {
  workload::Transformer model = llama();
  model.head_size = 64;
  model.positions = workload::Positions::kNone;
  model.mixture =
      workload::Mixture{.experts = 8, .per_token = 2, .feed_forward = 1024, .shared = 512};
  return model;
}

step::Spec spec_of(const strategies::Plan& plan, double microbatch = 1) {
  return {.workload = test::tiny_gpt(
              {.hidden = 1024, .heads = 16, .sequence = 1024, .vocabulary = 32000, .layers = 32}),
          .training = {.global_batch = 64, .microbatch = microbatch},
          .plan = plan,
          .conditions = {}};
}

std::string refusal(Framework framework, const step::Spec& spec,
                    const workload::Transformer& model) {
  const cluster::Cluster cluster = cluster_of_eight();
  const Result<Emitted> emitted = emit(framework, {spec, cluster, model});
  REQUIRE_FALSE(emitted);
  return to_string(emitted.error());
}

std::string text_of(Framework framework, const step::Spec& spec,
                    const workload::Transformer& model) {
  const cluster::Cluster cluster = cluster_of_eight();
  const Result<Emitted> emitted = emit(framework, {spec, cluster, model});
  INFO((emitted ? "" : to_string(emitted.error())));
  REQUIRE(emitted);
  return emitted->text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Megatron-LM has every flag that is written for it, and takes its value") {
  std::set<std::string> seen;
  std::vector<step::Spec> specs;
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U})
    specs.push_back(spec_of({.data = 8, .zero = zero}));
  specs.push_back(spec_of({.data = 2,
                           .tensor = 2,
                           .pipeline = 2,
                           .interleave = 4,
                           .schedule = strategies::Schedule::kInterleaved,
                           .zero = 1,
                           .sequence_parallel = true,
                           .asynchronous_tensor = true,
                           .placement = strategies::Placement::kTensorPipelineData}));
  specs.push_back(spec_of({.data = 2,
                           .tensor = 2,
                           .context = 2,
                           .expert = 2,
                           .expert_tensor = 1,
                           .sequence_parallel = true,
                           .bucket = Bytes::mib(100),
                           .capacity_factor = 1.25}));
  specs.push_back(spec_of({.data = 4, .pipeline = 2, .split = strategies::LayerSplit::kLayers}));
  specs.push_back(spec_of(
      {.data = 8, .zero = 1, .tiers = strategies::tiers_of(strategies::Offload::kOptimizer)}));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
      for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32, Dtype::kFp8}) {
        step::Spec spec = specs[i];
        spec.training.recompute = recompute;
        spec.training.dtype = dtype;
        if (spec.plan.expert > 1 && dtype == Dtype::kFp16) continue;
        const std::string text =
            text_of(Framework::kMegatron, spec, spec.plan.expert > 1 ? mixture() : llama());
        const Found flags = flags_of(text);
        REQUIRE(flags.size() > 20);
        check_known(flags, kMegatron, seen);
        // What validate_args asserts.
        if (flags.contains("--overlap-param-gather")) {
          CHECK((flags.contains("--use-distributed-optimizer") ||
                 flags.contains("--use-megatron-fsdp")));
          CHECK(flags.contains("--overlap-grad-reduce"));
        }
        if (flags.contains("--use-megatron-fsdp")) {
          CHECK(flags.at("--ckpt-format") == "fsdp_dtensor");
          CHECK_FALSE(has(text, "CUDA_DEVICE_MAX_CONNECTIONS=1\n"));
        } else if (spec.plan.tensor * spec.plan.context > 1) {
          CHECK(has(text, "CUDA_DEVICE_MAX_CONNECTIONS=1\n"));
        }
        if (flags.contains("--tp-comm-overlap")) CHECK(flags.contains("--sequence-parallel"));
        if (flags.contains("--moe-grouped-gemm")) CHECK(flags.contains("--bf16"));
        if (flags.contains("--optimizer-cpu-offload"))
          CHECK(flags.contains("--use-precision-aware-optimizer"));
        if (flags.contains("--recompute-method"))
          CHECK(flags.at("--recompute-granularity") == "full");
        CHECK_FALSE((flags.contains("--bf16") && flags.contains("--fp16")));
      }
  }
  step::Spec sgd = spec_of({.data = 8});
  sgd.training.optimizer = Optimizer::kMomentum;
  workload::Transformer gpt = llama();
  gpt.mixture = workload::Mixture{
      .experts = 8, .per_token = 2, .feed_forward = 1024, .first_dense = 3, .every = 2};
  gpt.query_norm = false;
  check_known(flags_of(text_of(Framework::kMegatron, sgd, gpt)), kMegatron, seen);
  // The list holds no name that nothing writes.
  for (const auto& [key, type] : kMegatron) {
    INFO(key);
    CHECK(seen.contains(key));
  }
}

TEST_CASE("Megatron-LM gets the list of mixture layers") {
  workload::Transformer model = mixture();
  const step::Spec spec = spec_of({.data = 8});
  CHECK_FALSE(has(text_of(Framework::kMegatron, spec, model), "--moe-layer-freq"));
  model.mixture->first_dense = 3;
  CHECK(has(text_of(Framework::kMegatron, spec, model), "--moe-layer-freq '[0]*3+[1]*29'\n"));
  // Of 29 layers after three, the second of each pair; the last has no pair.
  model.mixture->every = 2;
  CHECK(has(text_of(Framework::kMegatron, spec, model),
            "--moe-layer-freq '[0]*3+([0]*1+[1])*14+[0]*1'\n"));
}

TEST_CASE("Plans that Megatron-LM's checks refuse are refused before") {
  const auto refused = [](const step::Spec& spec, const workload::Transformer& model) {
    return refusal(Framework::kMegatron, spec, model);
  };
  workload::Transformer odd = llama();
  odd.sequence = 1022;
  CHECK(has(refused(spec_of({.data = 4, .context = 2}), odd),
            "no key for sequences of 1022 tokens on context 2"));
  CHECK(has(refused(spec_of({.data = 4, .tensor = 2, .asynchronous_tensor = true}), llama()),
            "no key for asynchronous_tensor without sequence parallelism"));
  CHECK(has(refused(spec_of({.data = 4, .tensor = 2}), mixture()),
            "no key for experts and tensor parallelism without sequence parallelism"));
  step::Spec half = spec_of({.data = 8, .expert = 2});
  half.training.dtype = Dtype::kFp16;
  CHECK(has(refused(half, mixture()), "no key for expert parallelism in fp16"));
  step::Spec sgd = spec_of({.data = 8, .zero = 1});
  sgd.training.optimizer = Optimizer::kSgd;
  CHECK(has(refused(sgd, llama()), "no key for ZeRO-1 with an optimizer other than Adam"));
}

TEST_CASE("DeepSpeed has every key that is written for it, and takes its value") {
  std::set<std::string> seen;
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U})
    for (const Optimizer optimizer : {Optimizer::kAdam, Optimizer::kMomentum})
      for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32})
        for (const auto offload : {strategies::Offload::kNone, strategies::Offload::kOptimizer,
                                   strategies::Offload::kWeights}) {
          step::Spec spec = spec_of({.data = zero == 0 ? 4U : 8U,
                                     .tensor = zero == 0 ? 2U : 1U,
                                     .zero = zero,
                                     .tiers = tiers_of(offload)});
          if (offload == strategies::Offload::kOptimizer && zero == 0) continue;
          if (offload == strategies::Offload::kWeights && zero != 3) continue;
          spec.training.optimizer = optimizer;
          spec.training.dtype = dtype;
          const Found keys = json_keys_of(text_of(Framework::kDeepspeed, spec, llama()));
          check_known(keys, kDeepspeed, seen);
          CHECK(keys.contains("zero_allow_untested_optimizer") ==
                (zero > 0 && optimizer != Optimizer::kAdam));
          // train_batch_size has to be the product with the data ranks.
          CHECK(std::stod(keys.at("train_batch_size")) ==
                std::stod(keys.at("train_micro_batch_size_per_gpu")) *
                    std::stod(keys.at("gradient_accumulation_steps")) * spec.plan.data);
        }
  for (const auto& [key, type] : kDeepspeed) {
    INFO(key);
    CHECK(seen.contains(key));
  }
}

TEST_CASE("torchtitan has every key that is written for it, and takes its value") {
  std::set<std::string> seen;
  std::vector<step::Spec> specs = {
      spec_of({.data = 8, .zero = 3}),
      spec_of({.data = 2,
               .tensor = 2,
               .context = 2,
               .expert = 2,
               .zero = 3,
               .sequence_parallel = true,
               .asynchronous_tensor = true}),
      spec_of({.data = 4, .pipeline = 2, .zero = 3}),
      spec_of({.data = 4,
               .pipeline = 2,
               .interleave = 2,
               .schedule = strategies::Schedule::kInterleaved,
               .zero = 3}),
      spec_of({.data = 4, .pipeline = 2, .schedule = strategies::Schedule::kGpipe, .zero = 3})};
  for (step::Spec& spec : specs)
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
      for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp32}) {
        spec.training.recompute = recompute;
        spec.training.dtype = dtype;
        const Found keys = toml_keys_of(text_of(Framework::kTorchtitan, spec, llama()));
        check_known(keys, kTorchtitan, seen);
        // ParallelDims: the product of the degrees is the world; its compiler overlaps tensor
        // parallelism.
        const auto degree = [&](const char* key) {
          return std::stoi(keys.at(std::string("parallelism.") + key + "_degree"));
        };
        CHECK(degree("data_parallel_replicate") * degree("data_parallel_shard") *
                  degree("context_parallel") * degree("tensor_parallel") *
                  degree("pipeline_parallel") ==
              8);
        CHECK(keys.contains("parallelism.enable_async_tensor_parallel") ==
              keys.contains("compile.enable"));
      }
  for (const auto& [key, type] : kTorchtitan) {
    INFO(key);
    CHECK(seen.contains(key));
  }
}

TEST_CASE("Plans that torchtitan's checks refuse are refused before") {
  const auto refused = [](const step::Spec& spec, const workload::Transformer& model) {
    return refusal(Framework::kTorchtitan, spec, model);
  };
  workload::Transformer odd = llama();
  odd.sequence = 1026;
  CHECK(has(refused(spec_of({.data = 4, .context = 2, .zero = 3}), odd),
            "no key for sequences of 1026 tokens on tensor 1 x context 2"));
  CHECK(has(refused(spec_of({.data = 2, .context = 4, .expert = 2, .zero = 3}), mixture()),
            "no key for expert 2 with 4 ranks of context and tensor in its groups"));
  CHECK(has(refused(spec_of({.data = 4,
                             .context = 2,
                             .zero = 3,
                             .context_exchange = strategies::ContextExchange::kAllToAll}),
                    llama()),
            "the launch file for torchtitan cannot express context_exchange all_to_all"));
  // 34 layers, embedding and head counted, in parts of five are seven parts.
  step::Spec uneven = spec_of({.data = 1, .pipeline = 8, .zero = 3});
  uneven.plan.split = strategies::LayerSplit::kLayers;
  CHECK(has(refused(uneven, llama()), "no key for 34 layers on 8 chunks"));
}

TEST_CASE("No launch file omits a field silently") {
  using strategies::FieldKind;
  const cluster::Cluster cluster = cluster_of_eight();
  for (const Framework framework :
       {Framework::kMegatron, Framework::kDeepspeed, Framework::kTorchtitan})
    for (const strategies::Field<strategies::Candidate>& field : strategies::plan_fields()) {
      // A plan in which the field matters.
      step::Spec spec = spec_of({.data = 2,
                                 .zero = framework == Framework::kTorchtitan ? 3U : 1U,
                                 .sequence_parallel = framework == Framework::kTorchtitan});
      const std::string name(field.name);
      if (name == "interleave" || name == "split" || name == "schedule" || name == "placement")
        spec.plan.pipeline = 2;
      if (name.find("tensor") != std::string::npos || name == "sequence_parallel") {
        spec.plan.tensor = 2;
        spec.plan.sequence_parallel = name != "sequence_parallel";
      }
      if (name.starts_with("context_")) spec.plan.context = 2;
      const bool experts = name.find("expert") != std::string::npos || name == "capacity_factor";
      if (experts && name != "expert") spec.plan.expert = 2;
      const workload::Transformer model = experts ? mixture() : llama();
      const Result<Emitted> before = emit(framework, {spec, cluster, model});
      if (!before) continue;  // the plan in which it matters is refused
      const std::size_t values = field.at.kind == FieldKind::kChoice ? field.at.choices.size()
                                 : field.at.kind == FieldKind::kFlag ? 2
                                                                     : 1;
      for (std::size_t v = 0; v < values; ++v) {
        strategies::Candidate candidate{spec.training, spec.plan};
        const strategies::FieldValue usual = field.at.get(candidate);
        const bool number =
            field.at.kind != FieldKind::kChoice && field.at.kind != FieldKind::kFlag;
        const double value = !number ? static_cast<double>(v)
                             : is_within(field.range, usual.value_or(1) * 2)
                                 ? std::max(usual.value_or(1) * 2, 1.0)
                                 : field.range.most / 2;
        field.at.set(candidate, value);
        if (!strategies::is_unusual(field, candidate)) continue;
        // As it would be anyway; one chunk runs in one order under both names.
        const auto used = [&](const strategies::Candidate& c) {
          return field.at.get(strategies::resolved(spec.workload, c));
        };
        if (used(candidate) == used({spec.training, spec.plan})) continue;
        if (name == "schedule" && candidate.plan.schedule == strategies::Schedule::kInterleaved)
          continue;
        step::Spec changed = spec;
        changed.training = candidate.training;
        changed.plan = candidate.plan;
        INFO(kFrameworkNames[static_cast<std::size_t>(framework)] << ": " << name << " "
                                                                  << value_words(field, value));
        const Result<Emitted> after = emit(framework, {changed, cluster, model});
        const bool unwritten =
            field.launch[static_cast<std::size_t>(framework)] == strategies::kUnwritten;
        // A note is for what the file cannot hold.
        if (after && !unwritten)
          CHECK((after->text != before->text || after->notes != before->notes));
        if (field.launch[static_cast<std::size_t>(framework)].empty()) CHECK_FALSE(after);
      }
    }
}

}  // namespace rehearse::cli
