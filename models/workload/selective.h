// Recomputation that is chosen by layer or by operation: what selective recomputation of a framework
// saves, operations that always run again in backward, and layers that do or do not.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/workload/workload.h"

namespace rehearse::workload {

/// The operations whose results selective recomputation keeps, by framework.
enum class Saved : std::uint8_t {
  kAllButScores,     ///< Megatron-LM: attention's scores run again
  kProducts,         ///< torchtitan: all but attention and every second matrix product runs again
  kProductsAndSums,  ///< the same under tensor parallelism, where sums over ranks are saved too
};
inline constexpr std::string_view kSavedNames[] = {"all_but_scores", "products",
                                                   "products_and_sums"};

/// Marks the operations and activations of blocks that selective recomputation drops. torchtitan
/// counts the matrix products of a block and saves the first, third, fifth and seventh: queries,
/// values, the first half of a gated input and the block's output. With attention that is 8.5 + 2
/// feed_forward / hidden bytes per element of a hidden state. If the sums over ranks are saved,
/// nothing needs the product before attention's output.
void save_selectively(Workload& workload, Saved saved);

/// Runs the operations of these names again before backward of their layers, under every kind of
/// recomputation.
void run_again(Workload& workload, std::span<const std::string> ops);

/// Layers whose names match the pattern (`*`: any text) run forward again before backward and save
/// only their inputs. Layers that run operations again already stay as they are. Fails if no name
/// matches.
Status recompute_layers(Workload& workload, std::string_view pattern);

/// Such layers run nothing again, and save all activations. Fails if no name matches, or if none of
/// these layers runs operations again.
Status keep_layers(Workload& workload, std::string_view pattern);

}  // namespace rehearse::workload
