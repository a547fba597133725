// A rank's number from a name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace rehearse::ingest {

/// The number after the last word "rank": 3 in "rank3", "RANK_3", "trainer (rank 3)".
std::optional<std::uint32_t> number_behind_rank(std::string_view name);

/// The number in a file name: the one after "rank", else the digits at the end of the name without
/// its extensions, else those at its beginning: 3 in "rank3_x.json", "dlrm_eg_3.json.gz",
/// "chakra.3.et", "3_trace.json".
std::optional<std::uint32_t> number_in_file_name(const std::filesystem::path& file);

/// The number of a Chakra file by that format's convention, PREFIX.RANK.et[.gz].
std::optional<std::uint32_t> number_before_extension(const std::filesystem::path& file);

}  // namespace rehearse::ingest
