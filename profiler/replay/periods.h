// Where a sequence of words begins again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::replay {

/// The places in a sequence at which a loop that wrote most of it began its turns; empty where
/// there is no such loop. The sequence may begin and end within a turn, and single words may be
/// missing, too many or others than usual.
///
/// What tells a turn is a word (or a run of a few) that comes once in each: it comes at even
/// distances throughout, and what stands between two of them stands between the next two as well.
/// Words that come several times a turn, as those of the layers of a network do, cannot pass for
/// that: their distances differ where one turn ends and the next begins.
std::vector<std::size_t> find_turns(std::span<const std::uint32_t> words);

}  // namespace rehearse::replay
