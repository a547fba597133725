#include "cli/validation/job_tables/shapes.h"

#include <cctype>
#include <string>

namespace rehearse::cli {
namespace {

struct Gpt {
  std::string_view name;
  std::uint32_t hidden, layers, heads;
};
constexpr Gpt kMpt[] = {{"125m", 768, 12, 12}, {"350m", 1024, 24, 16}, {"760m", 1536, 24, 12},
                        {"1b", 2048, 24, 16},  {"3b", 2560, 32, 20},   {"7b", 4096, 32, 32},
                        {"13b", 5120, 40, 40}, {"30b", 7168, 48, 56},  {"70b", 8192, 80, 64}};

/// Lower case letters and digits alone.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

struct Named {
  std::string_view name;  ///< plain
  std::uint32_t hidden, layers, heads, kv_heads, head_size, feed_forward, vocabulary;
  std::uint32_t experts, experts_per_token;
  bool gpt_oss = false;  ///< biases everywhere, activations clamped
};
constexpr Named kNamed[] = {
    {"llama38b", 4096, 32, 32, 8, 128, 14336, 128256, 0, 0},
    {"llama318b", 4096, 32, 32, 8, 128, 14336, 128256, 0, 0},
    {"llama370b", 8192, 80, 64, 8, 128, 28672, 128256, 0, 0},
    {"llama3170b", 8192, 80, 64, 8, 128, 28672, 128256, 0, 0},
    {"llama31405b", 16384, 126, 128, 8, 128, 53248, 128256, 0, 0},
    {"qwen330ba3b", 2048, 48, 32, 4, 128, 768, 151936, 128, 8},
    {"qwen3235ba22b", 4096, 94, 64, 4, 128, 1536, 151936, 128, 8},
    {"gptoss120b", 2880, 36, 64, 8, 64, 2880, 201088, 128, 4, true},
};

}  // namespace

ModelShape gpt_shape(std::uint32_t hidden, std::uint32_t layers, std::uint32_t heads,
                     std::uint32_t sequence, std::uint32_t vocabulary) {
  return {.hidden = hidden,
          .layers = layers,
          .heads = heads,
          .kv_heads = heads,
          .head_size = heads == 0 ? 0 : hidden / heads,
          .feed_forward = 4 * hidden,
          .vocabulary = vocabulary,
          .sequence = sequence,
          .learned_positions = true,
          .tied_embedding = true,
          .biases = true};
}

std::optional<ModelShape> mpt_shape(std::string_view size) {
  for (const Gpt& m : kMpt)
    if (m.name == plain(size)) return gpt_shape(m.hidden, m.layers, m.heads, 0, 50368);
  return std::nullopt;
}

std::optional<ModelShape> named_shape(std::string_view name) {
  for (const Named& m : kNamed)
    if (m.name == plain(name))
      return ModelShape{.hidden = m.hidden,
                        .layers = m.layers,
                        .heads = m.heads,
                        .kv_heads = m.kv_heads,
                        .head_size = m.head_size,
                        .feed_forward = m.feed_forward,
                        .vocabulary = m.vocabulary,
                        .gated = true,
                        .rms_norm = true,
                        .biases = m.gpt_oss,
                        .experts = m.experts,
                        .experts_per_token = m.experts_per_token,
                        .clamped_experts = m.gpt_oss};
  return std::nullopt;
}

}  // namespace rehearse::cli
