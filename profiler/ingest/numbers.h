// Numbers as trace files write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "sim/base/time.h"

namespace rehearse::ingest {

/// A finite number with nothing after it.
std::optional<double> parse_real(std::string_view text);

/// A decimal number of microseconds, exact to the nanosecond: epoch microseconds with three
/// decimals do not fit a double. Nothing if the text is not a number or exceeds 64 bits.
std::optional<Nanoseconds> parse_microseconds(std::string_view text);

/// A whole number, even if it is written with a fraction or exponent ("4.0", "1e3").
std::optional<std::int64_t> parse_whole(std::string_view text);

/// The same, within 32 bits and not negative: ids, counts.
std::optional<std::uint32_t> parse_id(std::string_view text);

/// The same, within 63 bits and not negative: sizes.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// The number after the last word "rank": 3 in "rank3", "RANK_3", "trainer (rank 3)".
std::optional<std::uint32_t> number_behind_rank(std::string_view name);

/// The number in a file name: the one after "rank", else the digits at the end of the name without
/// its extensions, else those at its beginning: 3 in "rank3_x.json", "dlrm_eg_3.json.gz",
/// "chakra.3.et", "3_trace.json".
std::optional<std::uint32_t> number_in_file_name(const std::filesystem::path& file);

/// The number of a Chakra file by that format's convention, PREFIX.RANK.et[.gz].
std::optional<std::uint32_t> number_before_extension(const std::filesystem::path& file);

}  // namespace rehearse::ingest
