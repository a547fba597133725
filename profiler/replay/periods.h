// Finds the repetitions of a sequence, such as the kernel names of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::replay {

/// The positions in a sequence at which the turns of its main loop begin; empty if there is no such
/// loop. The sequence may begin and end within a turn, and single words may be missing, additional
/// or different.
///
/// A turn is identified by a word (or a short run of them) that occurs once in each turn: its
/// occurrences are evenly spaced throughout, and the words between two occurrences recur between
/// the next two. Words that occur several times per turn, such as those of the layers of a network,
/// do not qualify: their distances differ at the border of two turns.
std::vector<std::size_t> find_turns(std::span<const std::uint32_t> words);

}  // namespace rehearse::replay
