// The schema shared by the writer and the reader of stores.
#pragma once

namespace rehearse::trace {

inline constexpr int kApplicationId = 0x52485253;  // "RHRS", in the header of the file

/// The statements that make an empty store.
extern const char* const kSchema;

}  // namespace rehearse::trace
