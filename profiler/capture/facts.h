// Facts about the process as a whole, which the file keeps for people and for the importer.
#pragma once

#include <initializer_list>
#include <string_view>

namespace rehearse::capture {

/// Writes a fact into the recording.
void note(std::string_view key, std::string_view value);

/// Reports data that cannot be recorded, with the reason: in one line on stderr, and as the fact
/// "trouble".
void trouble(std::initializer_list<std::string_view> parts);

}  // namespace rehearse::capture
