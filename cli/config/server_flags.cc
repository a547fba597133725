#include "cli/config/server_flags.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "models/memory/memory.h"

namespace rehearse::cli {
namespace {

using serving::Framework, serving::Order;

/// A setting under its common name, and its names by framework; empty: a server has none.
struct Names {
  std::string_view common;
  std::array<std::string_view, std::size(serving::kFrameworkNames)> own;
};
constexpr Names kTokens{"max_num_batched_tokens",
                        {"max_num_batched_tokens", "chunked_prefill_size", "max_num_tokens"}};
constexpr Names kRows{"max_num_seqs", {"max_num_seqs", "max_running_requests", "max_batch_size"}};
constexpr Names kBlock{"block_size", {"block_size", "page_size", "tokens_per_block"}};
constexpr Names kMemory{
    "memory", {"gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"}};
constexpr Names kPrefix{"prefix_cache",
                        {"enable_prefix_caching", "disable_radix_cache", "enable_block_reuse"}};
constexpr Names kChunked{"chunked_prefill",
                         {"enable_chunked_prefill", "", "enable_chunked_prefill"}};
constexpr Names kOverlap{
    "overlap", {"async_scheduling", "disable_overlap_schedule", "disable_overlap_scheduler"}};
constexpr Names kMixed{"", {"", "enable_mixed_chunk", ""}};
constexpr Names kConservative{"", {"", "schedule_conservativeness", ""}};
constexpr Names kReceive{"", {"", "scheduler_recv_interval", ""}};
constexpr Names kPolicy{"", {"", "", "capacity_scheduler_policy"}};
constexpr Names kScheduling{"", {"scheduling_policy", "", ""}};
constexpr Names kGraphs{"", {"max_cudagraph_capture_size", "", ""}};
constexpr std::string_view kPolicies[] = {"guaranteed_no_evict", "max_utilization"};
constexpr std::string_view kSchedulings[] = {"fcfs", "priority"};
constexpr std::array kAll = {kTokens,  kRows,       kBlock, kMemory,       kPrefix,
                             kChunked, kOverlap,    kMixed, kConservative, kReceive,
                             kPolicy,  kScheduling, kGraphs};

class Flags {
 public:
  Flags(const YamlMap& map, Framework framework)
      : map_(map), framework_(static_cast<std::size_t>(framework)) {
    for (const std::string& key : map.keys()) check(key);
  }

  void read(const Names& names, std::int64_t& to) const {
    each(names, [&](std::string_view key) {
      if (const auto value = map_.within<std::int64_t>(key, 1, 1 << 30)) to = *value;
    });
  }
  void read(const Names& names, double& to, double least, double most) const {
    each(names, [&](std::string_view key) {
      if (const auto value = map_.within<double>(key, least, most)) to = *value;
    });
  }
  void read(const Names& names, bool& to) const {
    each(names, [&](std::string_view key) {
      if (const auto value = map_.optional<bool>(key)) to = *value != key.starts_with("disable_");
    });
  }
  std::optional<std::size_t> choice(const Names& names,
                                    std::span<const std::string_view> of) const {
    return map_.choice(names.own[framework_], of);
  }
  std::vector<std::string_view> given() const {
    std::vector<std::string_view> names;
    for (const Names& each : kAll)
      if ((!each.common.empty() && map_.has(each.common)) ||
          (!each.own[framework_].empty() && map_.has(each.own[framework_])))
        names.push_back(key_of(each));
    return names;
  }
  static std::string_view key_of(const Names& names) {
    if (!names.common.empty()) return names.common;
    return *std::ranges::find_if(names.own, [](auto own) { return !own.empty(); });
  }

 private:
  template <class Read>
  void each(const Names& names, const Read& read) const {
    const std::string_view own = names.own[framework_];
    if (!names.common.empty() && map_.has(names.common)) read(names.common);
    if (!own.empty() && own != names.common && map_.has(own)) read(own);
  }

  void check(std::string_view key) const {
    for (const Names& names : kAll) {
      if (key == names.common || key == names.own[framework_]) return;
      const auto other = std::ranges::find(names.own, key);
      if (other == names.own.end()) continue;
      const std::string_view here = names.common.empty() ? names.own[framework_] : names.common;
      map_.report(
          key, fmt::format("is a flag of {}", serving::kFrameworkNames[other - names.own.begin()]),
          here.empty() ? fmt::format("flags of {}", serving::kFrameworkNames[framework_])
                       : std::string(here));
      map_.optional<std::string>(key);
      return;
    }
  }

  const YamlMap& map_;
  std::size_t framework_;
};

/// SGLang's estimate of the outputs to come (new_token_ratio): 0.7 falls within 600 steps to 0.14
/// of that.
void reserve_like_sglang(double conservativeness, serving::Rules& rules) {
  rules.reserve = std::min(1.0, 0.7 * conservativeness);
  rules.least_reserve = 0.14 * rules.reserve;
  rules.reserve_decay = (rules.reserve - rules.least_reserve) / 600;
}

/// SGLang's defaults by the memory of a device (server_args.py of 0.5.8): the prompt tokens of a step,
/// and the share of memory for weights and cache, which leaves room for them, for CUDA graphs and for
/// 0.5 GiB. The share is that of one tensor rank; eight take up to 2 % less. Other versions
/// may have other values.
void size_like_sglang(Bytes memory, ServerSettings& usual) {
  const double gib = memory.gib();
  usual.rules.tokens_per_step = gib < 35 ? 2048 : gib < 60 ? 4096 : gib < 160 ? 8192 : 16'384;
  const double graphs = gib < 20 ? 8 : gib < 35 ? 24 : gib < 60 ? 32 : gib < 160 ? 256 : 512;
  double reserved_mib =
      512 + 128 + 1.5 * static_cast<double>(usual.rules.tokens_per_step) + 2 * graphs;
  if (gib > 60) reserved_mib = std::max(reserved_mib, 10'240.0);
  usual.memory = 1 - reserved_mib / (1024 * gib);
}

/// The minor version of "0.11.2"; of the newest without one.
int minor_of(std::string_view version) {
  int minor = 1000;
  if (const std::size_t dot = version.find('.'); dot != version.npos && version.starts_with("0."))
    std::from_chars(version.data() + dot + 1, version.data() + version.size(), minor);
  return minor;
}

/// vLLM's engine before this minor version (V0) runs prompts apart, and whole unless they are
/// chunked. Then decode rows go first, and a step has 512 tokens.
constexpr int kFirstV1 = 8;

}  // namespace

ServerSettings usual_settings(Framework framework, std::string_view version,
                              const cluster::Gpu& gpu) {
  const bool large = gpu.memory >= Bytes::gib(70) && !gpu.name.starts_with("a100");
  ServerSettings usual;
  serving::Rules& rules = usual.rules;
  rules.prefix_cache = true;
  // vLLM's connectors and SGLang's HiCache copy prompts that were computed, TensorRT-LLM blocks that
  // others take.
  rules.writes_through = framework != Framework::kTrtllm;
  switch (framework) {
    case Framework::kVllm:
      rules.tokens_per_step = large ? 8192 : 2048;
      rules.most_rows = large ? 1024 : 256;
      rules.overlapped = minor_of(version) >= 14;
      usual.memory = minor_of(version) >= 22 ? 0.92 : 0.9;
      if (minor_of(version) < kFirstV1) {
        rules.order = Order::kPromptsApart;
        rules.chunked = false;
        rules.prefix_cache = false;
        rules.tokens_per_step = 32'768;  // the longest context without chunks
        rules.most_rows = 256;
      }
      break;
    case Framework::kSglang:
      rules.most_rows = 2048;
      rules.order = Order::kPromptsApart;
      rules.block_tokens = 1;
      reserve_like_sglang(1, rules);
      size_like_sglang(memory::device_of(gpu).usable, usual);
      break;
    case Framework::kTrtllm:
      rules.tokens_per_step = 8192;
      rules.most_rows = 2048;
      rules.chunked = false;
      rules.block_tokens = 32;
      rules.reserve = rules.least_reserve = 1;
      break;
  }
  return usual;
}

void read_server_flags(const YamlMap& map, Framework framework, ServerSettings& settings) {
  const Flags flags(map, framework);
  serving::Rules& rules = settings.rules;
  flags.read(kChunked, rules.chunked);
  if (framework == Framework::kVllm && rules.chunked && rules.order == Order::kPromptsApart) {
    rules.order = Order::kDecodeFirst;
    rules.tokens_per_step = 512;
  }
  flags.read(kTokens, rules.tokens_per_step);
  if (framework == Framework::kVllm)
    rules.most_rows = std::min(rules.most_rows, rules.tokens_per_step);
  flags.read(kRows, rules.most_rows);
  if (framework == Framework::kVllm && rules.most_rows > rules.tokens_per_step)
    map.report("max_num_seqs", "exceeds the tokens of a step",
               fmt::format("1 to {}, or a larger max_num_batched_tokens", rules.tokens_per_step));
  flags.read(kBlock, rules.block_tokens);
  flags.read(kMemory, settings.memory, 0.01, 1);
  flags.read(kPrefix, rules.prefix_cache);
  flags.read(kOverlap, rules.overlapped);
  flags.read(kReceive, rules.receive_interval);
  std::int64_t graphs = 0;
  flags.read(kGraphs, graphs);
  if (graphs > 0) settings.graphs = static_cast<double>(graphs);
  bool mixed = false;
  flags.read(kMixed, mixed);
  if (mixed) rules.order = Order::kDecodeFirst;  // chunks leave room for all running requests
  double conservativeness = 0;
  flags.read(kConservative, conservativeness, 0.01, 100);
  if (conservativeness > 0) reserve_like_sglang(conservativeness, rules);
  if (framework == Framework::kTrtllm)
    if (const auto policy = flags.choice(kPolicy, kPolicies); policy == 1u)
      rules.reserve = rules.least_reserve = 0;
  if (framework == Framework::kVllm)
    rules.by_priority = flags.choice(kScheduling, kSchedulings) == 1u;
  settings.given = flags.given();
  map.no_other_keys();
}

std::vector<ServerFlag> flags_of(Framework framework, const ServerSettings& usual,
                                 const ServerSettings& settings) {
  const auto f = static_cast<std::size_t>(framework);
  const serving::Rules &is = settings.rules, &was = usual.rules;
  std::vector<ServerFlag> flags = {{kTokens.own[f], std::to_string(is.tokens_per_step)},
                                   {kRows.own[f], std::to_string(is.most_rows)}};
  const auto add = [&](const Names& names, bool differs, std::string value) {
    if (differs) flags.push_back({names.own[f], std::move(value)});
  };
  const auto add_switch = [&](const Names& names, bool value, bool usually) {
    add(names, value != usually, value != names.own[f].starts_with("disable_") ? "true" : "false");
  };
  add(kBlock, is.block_tokens != was.block_tokens, std::to_string(is.block_tokens));
  add(kMemory, settings.memory != usual.memory, fmt::format("{:g}", settings.memory));
  add_switch(kPrefix, is.prefix_cache, was.prefix_cache);
  add_switch(kChunked, is.chunked, was.chunked);
  add_switch(kOverlap, is.overlapped, was.overlapped);
  if (framework == Framework::kSglang) {
    add_switch(kMixed, is.order == Order::kDecodeFirst, was.order == Order::kDecodeFirst);
    add(kConservative, is.reserve != was.reserve, fmt::format("{:g}", is.reserve / 0.7));
  }
  if (framework == Framework::kTrtllm)
    add(kPolicy, is.reserve != was.reserve, std::string(kPolicies[is.reserve > 0 ? 0 : 1]));
  add(kScheduling, is.by_priority != was.by_priority, std::string(kSchedulings[is.by_priority]));
  if (settings.graphs)
    add(kGraphs, settings.graphs != usual.graphs, fmt::format("{:g}", *settings.graphs));
  add(kReceive, is.receive_interval != was.receive_interval, std::to_string(is.receive_interval));
  return flags;
}

std::vector<serving::Rules> rules_to_try(Framework framework, const ServerSettings& settings,
                                         const LargestStep& largest) {
  const auto f = static_cast<std::size_t>(framework);
  const auto varies = [&](const Names& names) {
    return !names.own[f].empty() &&
           std::ranges::find(settings.given, Flags::key_of(names)) == settings.given.end();
  };
  std::vector<serving::Rules> tried = {settings.rules};
  /// Each of the rules with each of the values.
  const auto each = [&](const Names& names, auto serving::Rules::*of, auto values) {
    if (!varies(names)) return;
    std::vector<serving::Rules> all;
    for (const serving::Rules& rules : tried)
      for (const auto& value : values) {
        all.push_back(rules);
        all.back().*of = value;
      }
    tried = std::move(all);
  };
  /// Powers of two up to the first that holds `most`.
  const auto powers = [](std::int64_t from, std::int64_t to, std::int64_t most) {
    std::vector<std::int64_t> values;
    for (std::int64_t v = from; v <= to && (values.empty() || values.back() < most); v *= 2)
      values.push_back(v);
    return values;
  };
  each(kTokens, &serving::Rules::tokens_per_step, powers(512, 16'384, largest.tokens));
  each(kRows, &serving::Rules::most_rows, powers(8, 1024, largest.rows));
  if (framework == Framework::kTrtllm)
    each(kChunked, &serving::Rules::chunked, std::array{false, true});
  if (framework == Framework::kSglang)
    each(kMixed, &serving::Rules::order, std::array{Order::kPromptsApart, Order::kDecodeFirst});
  if (framework == Framework::kTrtllm && varies(kPolicy)) {
    const std::vector<serving::Rules> guaranteed = tried;
    for (serving::Rules rules : guaranteed) {
      rules.reserve = rules.least_reserve = 0;
      tried.push_back(rules);
    }
  }
  // A row takes a token at least; vLLM refuses such flags.
  std::erase_if(tried, [&](const serving::Rules& rules) {
    return rules.most_rows > rules.tokens_per_step && (varies(kRows) || varies(kTokens));
  });
  return tried;
}

}  // namespace rehearse::cli
